#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "program/program.h"

// The container: a header, a table of sections, and the sections, each at a multiple of 64 bytes with zeros
// between.
//
// - header, 64 bytes: magic, version, section count, required features, file size, hash of the table, hash of
//   the header
// - table, 48 bytes a section: name, offset, size, hash; sections follow in the order of the table
// - sections of a program: "plan" (FlatBuffers), "origin" (text pairs), "test vectors" (since version 1.1;
// left
//   out where there are none), "blob table" (offset, size and hash of each blob), "blobs" (raw bytes)
// - since version 1.3 "device code", left out where there is none: what devices compiled, by their
// capabilities
// - since version 1.2, with a feature for each: a program whose blobs are in another file says in "beside"
// which
//   one, and what they are; that file has "weights" (their names and types), "blob table" and "blobs"
//
// The first 64 bytes mean the same in every version. A reader skips sections it does not know, and says so;
// what it must not skip is announced by a bit in required features. The hashes find accidents, not attackers:
// nothing here trusts them for memory safety.
namespace weft::program {

using Hash = Hash128;

/// What a container holds.
enum class Holds : uint8_t {
  program,         ///< with its blobs
  program_beside,  ///< and names the file that its blobs are in
  weights,         ///< that file
};

/// The sections of an opened file, all hashes and all padding checked; empty what it does not hold.
struct Container {
  Holds holds = Holds::program;
  std::span<const std::byte> plan, origin, tests, code, beside, weights;
  std::vector<std::span<const std::byte>> blobs;
  std::vector<Hash> hashes;  // of the blobs
  std::vector<SkippedSection> skipped;
};

struct NamedSection {
  std::string_view name, bytes;
};
/// Everything up to the first blob. The rest of the file is each blob, followed by blob_padding() zeros.
/// "test vectors", "device code" and "beside" without bytes are left out.
std::string container_head(const std::vector<NamedSection>& sections, std::span<const Blob> blobs,
                           Holds holds = Holds::program);
/// Zeros between blob `i` and the next one; none after the last.
size_t blob_padding(std::span<const Blob> blobs, size_t i);

/// Errors begin with the section they are about: header, section table, plan, origin, test vectors, device
/// code, beside, weights, blob table, blobs, or blob 3.
Result<Container> open_container(std::span<const std::byte> file);

}  // namespace weft::program

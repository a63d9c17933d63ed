#pragma once
#include <span>
#include <string>
#include <vector>

#include "program/program.h"

// The container: a header, a table of sections, and the sections, each at a multiple of 64 bytes with zeros
// between.
//
// - header, 64 bytes: magic, version, section count, required features, file size, hash of the table, hash of
//   the header
// - table, 48 bytes a section: name, offset, size, hash; sections follow in the order of the table
// - sections: "plan" (FlatBuffers), "origin" (text pairs), "test vectors" (since version 1.1; left out where
//   there are none), "blob table" (offset, size and hash of each blob), "blobs" (raw bytes)
//
// The first 64 bytes mean the same in every version. A reader skips sections it does not know, and says so;
// what it must not skip is announced by a bit in required features. What a device compiled may lie in a
// section of its own, named after the device: no reader needs it. The hashes find accidents, not attackers:
// nothing here trusts them for memory safety.
namespace weft::program {

/// The sections of an opened file, all hashes and all padding checked.
struct Container {
  std::span<const std::byte> plan, origin, tests;
  std::vector<std::span<const std::byte>> blobs;
  std::vector<SkippedSection> skipped;
};

/// Everything up to the first blob. The rest of the file is each blob, followed by blob_padding() zeros.
std::string container_head(std::string_view plan, std::string_view origin, std::span<const Blob> blobs,
                           std::string_view tests = {});
/// Zeros between blob `i` and the next one; none after the last.
size_t blob_padding(std::span<const Blob> blobs, size_t i);

/// Errors begin with the section they are about: header, section table, plan, origin, test vectors, blob
/// table, blobs, or blob 3.
Result<Container> open_container(std::span<const std::byte> file);

}  // namespace weft::program

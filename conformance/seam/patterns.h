#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "conformance/numbers.h"
#include "conformance/seam/rig.h"

// What memory is filled with where a check asks whether it stays as it is.
namespace weft::conformance {

/// Numbers without end of which each eight bytes tell whose they are and where they belong.
class Pattern {
 public:
  explicit Pattern(uint64_t key) : key_(key * 0x9e3779b97f4a7c15) {}
  /// From byte `at` of the pattern on.
  void fill(std::span<std::byte> bytes, size_t at = 0) const;
  std::vector<std::byte> bytes(size_t n, size_t at = 0) const;
  /// The first byte that is another one, counted from the beginning of `bytes`.
  std::optional<size_t> first_wrong(std::span<const std::byte> bytes, size_t at = 0) const;

 private:
  uint64_t word(size_t i) const {
    const uint64_t x = (key_ + i) * 0xd1b54a32d192ed03;
    return x ^ x >> 29;
  }
  uint64_t key_;
};

/// Memory of a device that holds a pattern.
struct Held {
  seam::BufferRef buffer;
  size_t bytes = 0;
  Pattern pattern{0};
};
/// Raises what the device says against it, and where host memory is not aligned.
Held hold(Rig& rig, size_t bytes, uint64_t key);
/// What is wrong with it; empty: nothing.
std::string spoilt(Rig& rig, const Held& held);

/// A number of bytes between two, as likely in each power of two, and more often than others one at which
/// pages and blocks end.
size_t drawn_size(Random& random, size_t least, size_t most);

}  // namespace weft::conformance

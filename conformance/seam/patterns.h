#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "conformance/numbers.h"
#include "conformance/seam/rig.h"

// Patterns that fill memory which must not change.
namespace weft::conformance {

/// An endless sequence in which every eight bytes identify their owner and position.
class Pattern {
 public:
  explicit Pattern(uint64_t key) : key_(key * 0x9e3779b97f4a7c15) {}
  /// From byte `at` of the pattern.
  void fill(std::span<std::byte> bytes, size_t at = 0) const;
  std::vector<std::byte> bytes(size_t n, size_t at = 0) const;
  /// The index in `bytes` of the first byte that differs.
  std::optional<size_t> first_wrong(std::span<const std::byte> bytes, size_t at = 0) const;

 private:
  using Block = uint64_t[64];
  /// The words with its bytes from `at`, at most n of them; how many bytes those are.
  size_t block(size_t at, size_t n, Block& words) const;
  uint64_t word(size_t i) const {
    const uint64_t x = (key_ + i) * 0xd1b54a32d192ed03;
    return x ^ x >> 29;
  }
  uint64_t key_;
};

/// Device memory that holds a pattern.
struct Held {
  seam::BufferRef buffer;
  size_t bytes = 0;
  Pattern pattern{0};
};
/// Raises the device's error, and if host memory is not aligned.
Held hold(Rig& rig, size_t bytes, uint64_t key);
/// What is wrong with it; empty if nothing.
std::string spoilt(Rig& rig, const Held& held);

/// A random number of bytes between two, log-uniform, with sizes at which pages and blocks end more often.
size_t drawn_size(Random& random, size_t least, size_t most);

}  // namespace weft::conformance

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft {

/// XXH3 of 128 bits, with the vectors that the processor has. It finds accidents, not attackers.
struct Hash128 {
  uint64_t low = 0, high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 hash128(std::span<const std::byte> bytes);

/// With a secret of hash128_secret(): who does not know it can't make other bytes of the same hash.
Hash128 hash128(std::span<const std::byte> bytes, std::span<const std::byte> secret);
inline constexpr size_t kHashSecret = 192;
/// A secret made of a seed, which must be random.
void hash128_secret(std::span<const std::byte> seed, std::span<std::byte, kHashSecret> secret);

}  // namespace weft

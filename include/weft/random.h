#pragma once
#include <cstdint>

namespace weft {

/// Word number `counter` of the sequence that `seed` begins: a function of the two, so any part of a sequence
/// can be drawn again, in any order, on any machine.
///
/// Source   Steele, Lea and Flood, Fast splittable pseudorandom number generators (OOPSLA 2014): SplitMix64,
/// whose state
///          is a counter.
constexpr uint64_t random_word(uint64_t seed, uint64_t counter) {
  const auto mix = [](uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  };
  // The seed is mixed first: sequences of seeds that lie side by side have nothing in common.
  return mix(mix(seed + 0x9e3779b97f4a7c15ull) + (counter + 1) * 0x9e3779b97f4a7c15ull);
}

/// A word as a number in [0, 1), from its upper 53 bits.
constexpr double unit(uint64_t word) { return static_cast<double>(word >> 11) * 0x1p-53; }

}  // namespace weft

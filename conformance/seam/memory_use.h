#pragma once
#include <cstdint>

// What a process has of memory, for checks that ask whether it comes back.
namespace weft::conformance {

/// Bytes of this process that are in memory, but for those that only malloc keeps.
uint64_t resident_bytes();
/// Bytes that malloc has given out and not had back, the plug-in's among them.
uint64_t held_bytes();
/// Does held_bytes() tell? Not every malloc says how much it has given out.
bool held_is_told();

/// By how many bytes so many rounds grow what `measure` tells; 0 where that stays below `least` once in two
/// tries.
template <class F>
uint64_t grown_by(uint64_t (*measure)(), int rounds, uint64_t least, F once) {
  uint64_t more = 0;
  for (int again = 0; again < 2; ++again) {
    const uint64_t before = measure();
    for (int i = 0; i < rounds; ++i) once();
    const uint64_t after = measure();
    more = after > before ? after - before : 0;
    if (more < least) return 0;
  }
  return more;
}

}  // namespace weft::conformance

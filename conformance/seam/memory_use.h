#pragma once
#include <cstdint>

// Memory use of the process, for checks for leaks.
namespace weft::conformance {

/// Resident bytes of this process, without those that only malloc keeps.
uint64_t resident_bytes();
/// Bytes allocated by malloc and not freed, including the plug-in's.
uint64_t held_bytes();
/// Whether held_bytes() works: not every malloc reports it.
bool held_is_told();

/// The growth of `measure` in bytes over so many rounds; 0 if it stays below `least` in one of two tries.
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

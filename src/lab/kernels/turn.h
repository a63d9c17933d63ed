#pragma once
#include <cstddef>
#include <cstdint>

#include "weft/random.h"

// What the lab and the process of a kernel agree on, besides JSON.
namespace weft::lab {

inline constexpr std::byte kSpoilt{0xff};

/// One change before a launch: a number of an operand becomes another, and an element of a result is spoiled.
/// A kernel that gives what it computed before is wrong then.
struct Edit {
  uint64_t input_at = 0, output_at = 0;       ///< bytes into the shared memory
  uint8_t input_bytes = 0, output_bytes = 0;  ///< of an element; 0: nothing is changed
  std::byte value[8] = {};
  std::byte spoilt[8] = {kSpoilt, kSpoilt, kSpoilt, kSpoilt, kSpoilt, kSpoilt, kSpoilt, kSpoilt};
  /// Where an element of a result may be kept after the launch, so that the lab can judge launches in the
  /// midst of a turn: on a line through the rows that the edits of the launch concern, or anywhere in the
  /// result. Those of a launch are in the first of its edits.
  uint64_t line_at = 0, line_step = 0, line_count = 0;
  uint64_t result_at = 0, result_count = 0;
  uint8_t sample_bytes = 0;  ///< of an element; 0: none is kept
  uint64_t sample_at = 0;    ///< the one that the process has kept
  std::byte sample[8] = {};
};
inline constexpr uint64_t kMostLaunches = 4096;  ///< of a turn, and edits
inline constexpr int kSocket = 3, kMemory = 4;   ///< descriptors of a kernel's process

/// The processor's counter, in order with what is before and behind it.
inline uint64_t ticks() {
#if defined(__x86_64__)
  uint32_t low = 0, high = 0, core = 0;
  asm volatile("lfence\n\trdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(core)::"memory");
  return uint64_t{high} << 32 | low;
#elif defined(__aarch64__)
  uint64_t now = 0;
  asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(now)::"memory");
  return now;
#else
#error "weft lab: which counter has this processor?"
#endif
}

/// Ticks of the processor's counter that a chain of kChain additions takes, each of which waits for the one
/// before, so one a cycle: the counter runs evenly, the processor's clock does not. The least of three.
inline constexpr uint64_t kChain = 4096;
inline uint64_t chain_ticks() {
  uint64_t least = UINT64_MAX;
  for (int run = 0; run < 3; ++run) {
    uint64_t x = 1, y = 2;
    const uint64_t began = ticks();
    for (uint64_t i = 0; i < kChain; i += 8) {
#if defined(__x86_64__)
      asm volatile(
          "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
          "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
          : "+r"(x)
          : "r"(y)
          : "cc");
#elif defined(__aarch64__)
      asm volatile(
          "add %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\t"
          "add %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1"
          : "+r"(x)
          : "r"(y));
#endif
    }
    const uint64_t took = ticks() - began;
    if (took < least) least = took;
  }
  return least;
}

/// Which element is kept of launch number `launch`, whose edits are `each` of those in the list. A kernel can
/// read the list: so it is drawn by the counter once the launch is over, and could have been any. Six of
/// eight are ones that the last edit should have changed, one of eight is one that an edit of this turn has
/// spoilt.
inline uint64_t draw_sample_place(const Edit* edits, uint64_t each, uint64_t launch) {
  const Edit& e = edits[launch * each];
  const uint64_t kind = random_word(ticks(), 0), word = random_word(kind, 0);
  const auto below = [&](uint64_t n) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(word) * n >> 64);
  };
  if (kind % 8 < 6) return e.line_at + below(e.line_count) * e.line_step;
  const Edit& spoilt = edits[below(launch + 1) * each];
  if (kind % 8 == 6 && spoilt.output_bytes) return spoilt.output_at;
  return e.result_at + below(e.result_count) * e.sample_bytes;
}

}  // namespace weft::lab

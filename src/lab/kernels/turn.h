#pragma once
#include <cstdint>

// What the lab and the process of a kernel agree on, besides JSON.
namespace weft::lab {

/// One change before a launch: a number of an operand becomes another, and an element of a result is spoiled.
/// A kernel that gives what it computed before is wrong then.
struct Edit {
  uint64_t input_at = 0, output_at = 0;       ///< bytes into the shared memory
  uint8_t input_bytes = 0, output_bytes = 0;  ///< of an element; 0: nothing is changed
  std::byte value[8] = {};
  /// An element of a result, which the process keeps here after the launch: so the lab can judge launches in
  /// the midst of a turn.
  uint64_t sample_at = 0;
  uint8_t sample_bytes = 0;  ///< 0: none
  std::byte sample[8] = {};
};
inline constexpr uint64_t kMostLaunches = 4096;  ///< of a turn, and edits
inline constexpr int kSocket = 3, kMemory = 4;   ///< descriptors of a kernel's process
inline constexpr std::byte kSpoilt{0xff};        ///< floats: NaN; integers: -1

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

}  // namespace weft::lab

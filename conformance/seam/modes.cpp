#include "conformance/seam/modes.h"

#include <fmt/core.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/thread_pool.h"

namespace weft::conformance {
namespace {

#if defined(__x86_64__)
constexpr unsigned kUsual = 0x1f80, kModes = 0xffc0;  // of MXCSR; the low six bits are exception flags
constexpr unsigned kFlush = 0x8000, kDenormalsAreZero = 0x40;
constexpr uint16_t kUsualX87 = 0x37f, kModesX87 = 0xf3f;

uint16_t x87() {
  uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
std::string words_of_modes() {
  const unsigned now = __builtin_ia32_stmxcsr();
  std::string words;
  if (now & kFlush) words += ", results that are denormal become zero";
  if (now & kDenormalsAreZero) words += ", denormal operands count as zero";
  if ((now & kModes) != kUsual) words += fmt::format(", MXCSR is {:#06x}, not {:#06x}", now & kModes, kUsual);
  if ((x87() & kModesX87) != (kUsualX87 & kModesX87))
    words += fmt::format(", the x87 control word is {:#05x}, not {:#05x}", x87(), kUsualX87);
  return words;
}
void reset_modes() {
  __builtin_ia32_ldmxcsr(kUsual);
  const uint16_t word = kUsualX87;
  asm volatile("fldcw %0" : : "m"(word));
}
#elif defined(__aarch64__)
uint64_t fpcr() {
  uint64_t word = 0;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
std::string words_of_modes() { return fpcr() ? fmt::format(", FPCR is {:#x}, not 0", fpcr()) : ""; }
void reset_modes() { asm volatile("msr fpcr, %0" : : "r"(uint64_t{0})); }
#else
std::string words_of_modes() { return ""; }
void reset_modes() {}
#endif

/// One piece for each thread: each waits until all threads have one, so that every thread gets its turn. If
/// one does not come, on a busy machine, the others go on without it.
struct Roll {
  static constexpr auto kPatience = std::chrono::milliseconds(20);
  const int threads;
  std::atomic<int> here{0};
  std::mutex mutex;
  std::string words = {};

  void call() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (++here; here < threads && std::chrono::steady_clock::now() < end;) std::this_thread::yield();
    if (auto changed = changed_modes(); !changed.empty()) {
      restore_modes();
      const std::lock_guard lock(mutex);
      words = std::move(changed);
    }
  }
};

}  // namespace

std::string changed_modes() {
  std::string words;
  if (std::fegetround() != FE_TONEAREST) words += ", it does not round to the nearest";
  words += words_of_modes();
  return words.empty() ? "" : words.substr(2);
}

void restore_modes() {
  std::fesetround(FE_TONEAREST);
  reset_modes();
}

std::string changed_modes_of_workers() {
  Roll roll{.threads = thread_count()};
  const auto each = [](void* all, int64_t, int64_t) { static_cast<Roll*>(all)->call(); };
  parallel_for(roll.threads, 0, each, &roll);
  return roll.words;
}

}  // namespace weft::conformance

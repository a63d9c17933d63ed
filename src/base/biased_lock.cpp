#include "base/biased_lock.h"

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft {

#if defined(__linux__)
static bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

bool has_process_barrier() {
  static const bool there = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return there;
}
#else
bool has_process_barrier() { return false; }
#endif

void process_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
#if defined(__linux__)
  if (has_process_barrier()) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#endif
}

void BiasedLock::enter_slowly() {
  for (;;) {
    busy_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (visitor_.load(std::memory_order_acquire) != kVisitor) return;
    busy_.store(false, std::memory_order_release);
    while (visitor_.load(std::memory_order_acquire) == kVisitor) std::this_thread::yield();
  }
}

}  // namespace weft

#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace weft {

/// Makes every thread of the process pass a full memory barrier, by a system call of Linux (membarrier).
void process_barrier();
/// False where the kernel has no such call: then owners of a BiasedLock pay for the barrier.
bool has_process_barrier();

/// A lock for data that one thread, its owner, uses all the time and others rarely: the owner pays two plain
/// stores and a load, a visitor a system call. Method: asymmetric Dekker; D. Dice, H. Huang, M. Yang,
/// "Asymmetric Dekker Synchronization", 2001.
class BiasedLock {
 public:
  /// Holds the lock for the owner. Must not be nested.
  class Owner {
   public:
    explicit Owner(BiasedLock& lock) : lock_(lock) { lock.enter(); }
    ~Owner() { lock_.busy_.store(false, std::memory_order_release); }
    Owner(const Owner&) = delete;

   private:
    BiasedLock& lock_;
  };

  template <class F>
  void own(const F& f) {
    const Owner owner(*this);
    f();
  }
  /// Holds the lock for another thread. The caller must ensure one visitor at a time.
  template <class F>
  void visit(const F& f) {
    visitor_.store(kVisitor, std::memory_order_relaxed);
    process_barrier();
    while (busy_.load(std::memory_order_acquire)) std::this_thread::yield();
    f();
    visitor_.store(at_rest_, std::memory_order_release);
  }

 private:
  static constexpr uint8_t kNobody = 0, kVisitor = 1,
                           kFence = 2;  // the last where there is no process_barrier

  // Either the owner sees the visitor, or the visitor sees the owner: between its store and its load stands
  // the visitor's barrier, which runs on this thread too.
  void enter() {
    busy_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (visitor_.load(std::memory_order_acquire) != kNobody) [[unlikely]]
      enter_slowly();
  }
  void enter_slowly();

  std::atomic<bool> busy_{false};
  const uint8_t at_rest_ = has_process_barrier() ? kNobody : kFence;
  std::atomic<uint8_t> visitor_{at_rest_};
};

}  // namespace weft

#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"

namespace weft {
namespace {

// Tells the core that this is a spin, so that its other thread and the power budget get the time.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int cores() {
  static const int n = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return n;
}

thread_local bool inside =
    false;  // a worker, or a caller whose pieces run now: nested calls stay on this thread

// One job at a time. Its pieces are taken by an atomic counter, so a job needs nobody but its caller: workers
// that are awake join it, and the caller waits for those that did, not for those still waking up. A second
// caller that finds the pool busy runs its job alone: two sessions on two threads then use two cores without
// waiting for each other.
//
// Waking a thread takes longer than a small matmul. So workers stay awake for a while after a job, and sleep
// when no other comes.
class Pool {
 public:
  explicit Pool(int workers) : spins_(workers < cores() ? kSpins : 0) {
    try {
      for (int i = 0; i < std::min(workers, kMostWorkers); ++i) threads_.emplace_back([this] { work(); });
    } catch (
        const std::system_error& e) {  // the machine has no more: the work is done all the same, by fewer
      warn("{} of {} threads could be started: {}", threads_.size(), workers, e.what());
    }
  }
  ~Pool() {
    stop_ = true;
    state_.fetch_add(kJob, std::memory_order_release);
    state_.notify_all();
    for (auto& t : threads_) t.join();
  }

  bool run(int64_t n, int64_t piece, ParallelBody body, void* context) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    n_ = n, piece_ = piece, body_ = body, context_ = context;
    next_.store(0, std::memory_order_relaxed);
    failed_ = nullptr;
    const uint32_t job = (state_.load(std::memory_order_relaxed) + kJob) | kOpen;
    {
      const Closed at_the_end{*this};
      state_.exchange(job);  // in one order with the look for sleepers that notify_all begins with
      state_.notify_all();
      take_pieces();
    }
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    return true;
  }

 private:
  // The state: how many workers have joined the job, whether more may, and a number that tells jobs apart.
  static constexpr uint32_t kJoined = 0x7fff, kOpen = 0x8000, kJob = 0x10000;
  static constexpr int kMostWorkers = 1024, kSpins = 4096;  // tens of microseconds, by the kind of core

  /// The end of a job, also where a piece has thrown: nobody is in it any more.
  struct Closed {
    Pool& pool;
    ~Closed() {
      pool.state_.fetch_and(~kOpen, std::memory_order_acq_rel);
      pool.await([](uint32_t state) { return (state & kJoined) == 0; });
    }
  };

  /// Waits until `ready(state)`: awake at first, then asleep.
  template <class F>
  uint32_t await(F ready) const {
    uint32_t state = state_.load(std::memory_order_acquire);
    for (int i = 0; i < spins_ && !ready(state); ++i) relax(), state = state_.load(std::memory_order_acquire);
    for (; !ready(state); state = state_.load(std::memory_order_acquire))
      state_.wait(state, std::memory_order_acquire);
    return state;
  }
  void take_pieces() {
    for (int64_t at; (at = next_.fetch_add(piece_, std::memory_order_relaxed)) < n_;)
      body_(context_, at, std::min(at + piece_, n_));
  }
  // What a piece throws on a worker is the caller's, as it is where the caller runs that piece.
  void help() {
    try {
      take_pieces();
    } catch (...) {
      const std::lock_guard lock(failing_);
      if (!failed_) failed_ = std::current_exception();
    }
  }
  void work() {
    inside = true;
    for (uint32_t seen = 0;;) {
      uint32_t state = await([&](uint32_t s) { return stop_ || s / kJob != seen; });
      if (stop_) return;
      seen = state / kJob;
      // What the job is may be read once it has been joined: the next one waits for that.
      while ((state & kOpen) && state / kJob == seen)
        if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
          help();
          if (((state_.fetch_sub(1, std::memory_order_acq_rel) - 1) & kJoined) == 0) state_.notify_all();
          break;
        }
    }
  }

  const int spins_;
  std::vector<std::thread> threads_;
  std::mutex busy_;
  std::atomic<uint32_t> state_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> next_{0};
  int64_t n_ = 0, piece_ = 1;
  ParallelBody body_ = nullptr;
  void* context_ = nullptr;
  std::mutex failing_;
  std::exception_ptr failed_;  // the first one on a worker; read when all have left the job
};

// A child process has none of its parent's threads. It gives up their pool without joining them, and makes
// one of its own when it needs one.
void lock_for_fork();
void unlock_after_fork();
void begin_as_a_child();

struct Shared {
  Shared() { ::pthread_atfork(lock_for_fork, unlock_after_fork, begin_as_a_child); }

  std::mutex mutex;
  int wanted = 0;
  std::shared_ptr<Pool> pool;
};
Shared& shared() {
  static Shared s;
  return s;
}

void lock_for_fork() { shared().mutex.lock(); }
void unlock_after_fork() { shared().mutex.unlock(); }
void begin_as_a_child() {
  static auto* const given_up = new std::vector<std::shared_ptr<Pool>>;  // ends with the process
  if (auto& pool = shared().pool) given_up->push_back(std::move(pool));
  unlock_after_fork();
}

}  // namespace

void set_thread_count(int n) {
  std::lock_guard lock(shared().mutex);
  shared().wanted = n;
  shared().pool.reset();
}

int thread_count() {
  std::lock_guard lock(shared().mutex);
  const int wanted = shared().wanted;
  return wanted > 0 ? wanted : cores();
}

void parallel_for(int64_t n, int64_t grain, ParallelBody body, void* context) {
  if (n <= 0) return;
  if (inside || n <= grain) return body(context, 0, n);
  const int threads = thread_count();
  std::shared_ptr<Pool> pool;
  if (threads > 1) {
    std::lock_guard lock(shared().mutex);
    if (!shared().pool) shared().pool = std::make_shared<Pool>(threads - 1);
    pool = shared().pool;
  }
  const int64_t piece = std::max(std::max<int64_t>(grain, 1), (n + 4 * threads - 1) / (4 * threads));
  struct Inside {
    Inside() { inside = true; }
    ~Inside() { inside = false; }
  } const here;
  if (pool && pool->run(n, piece, body, context)) return;
  for (int64_t at = 0; at < n; at += piece) body(context, at, std::min(at + piece, n));  // the same pieces
}

}  // namespace weft

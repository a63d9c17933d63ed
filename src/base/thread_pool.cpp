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

// Tells the core that this is a spin loop, which frees resources for its other hardware thread.
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
    false;  // on a worker, or a caller whose pieces run: nested calls stay on this thread

/// Even pieces of [0, n).
struct Job {
  int64_t n = 0, pieces = 0;
  ParallelBody body = nullptr;
  void* context = nullptr;

  void run(int64_t i) const { body(context, n * i / pieces, n * (i + 1) / pieces); }
};

// One job at a time. An atomic counter hands out its pieces, so the caller alone can finish a job: workers
// that are awake join, and the caller waits for those that joined, not for those still waking up. A second
// caller that finds the pool busy runs its job alone: two sessions on two threads then use two cores without
// waiting.
//
// Waking a thread takes longer than a small matmul, so workers stay awake for a while after a job. A job of
// few pieces has as few seats, since the caller would have to wait for every further worker to join and
// leave.
class Pool {
 public:
  explicit Pool(int workers) : spins_(workers < cores() ? kSpins : 0) {
    try {
      for (int i = 0; i < std::min<int>(workers, kMostWorkers); ++i)
        threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& e) {  // no more threads: fewer of them do the work
      warn("{} of {} threads could be started: {}", threads_.size(), workers, e.what());
    }
  }
  ~Pool() {
    stop_ = true;
    state_.fetch_add(kJob, std::memory_order_release);
    state_.notify_all();
    for (auto& t : threads_) t.join();
  }

  bool run(const Job& job) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    job_ = job;
    next_.store(0, std::memory_order_relaxed);
    failed_ = nullptr;
    const auto seats = static_cast<uint32_t>(std::min<int64_t>(job.pieces - 1, std::ssize(threads_)));
    {
      const Closed at_the_end{*this};
      // Sequentially consistent with the checks for sleepers.
      state_.exchange(((state_.load(std::memory_order_relaxed) & ~(kJob - 1)) + kJob) | seats * kSeat);
      wake(seats);
      take_pieces();
    }
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    return true;
  }

 private:
  // The state: the number of workers that have joined the job, the free seats, and the number of the job.
  static constexpr uint32_t kMostWorkers = 1023, kSeat = 1024, kSeats = kMostWorkers * kSeat,
                            kJob = 1024 * kSeat;
  static constexpr int kSpins = 4096;  // tens of microseconds, depending on the core

  static uint32_t joined(uint32_t state) { return state & kMostWorkers; }

  /// The end of a job, even if a piece has thrown: waits until all workers have left it.
  struct Closed {
    Pool& pool;
    ~Closed() {
      uint32_t state = pool.state_.fetch_and(~kSeats, std::memory_order_acq_rel);
      for (int i = 0; i < pool.spins_ && joined(state); ++i)
        relax(), state = pool.state_.load(std::memory_order_acquire);
      while (true) {
        const uint32_t left = pool.left_.load(std::memory_order_acquire);
        if (!joined(pool.state_.load(std::memory_order_acquire))) return;
        pool.left_.wait(left, std::memory_order_acquire);
      }
    }
  };

  /// Wakes as many sleepers as there are seats left by those awake.
  void wake(uint32_t seats) {
    const uint32_t asleep = asleep_.load(), awake = static_cast<uint32_t>(threads_.size()) - asleep;
    if (seats <= awake) return;
    if (2 * (seats - awake) > asleep) return state_.notify_all();
    for (uint32_t i = awake; i < seats; ++i) state_.notify_one();
  }
  void take_pieces() {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < job_.pieces;) job_.run(i);
  }
  // An exception of a piece on a worker goes to the caller, as if the caller had run it.
  void help() {
    try {
      take_pieces();
    } catch (...) {
      const std::lock_guard lock(failing_);
      if (!failed_) failed_ = std::current_exception();
    }
  }
  /// Waits for another job than `seen`, first spinning, then sleeping; returns the state.
  uint32_t next_job(uint32_t seen) {
    uint32_t state = state_.load(std::memory_order_acquire);
    const auto same = [&] { return state / kJob == seen && !stop_; };
    for (int i = 0; i < spins_ && same(); ++i) relax(), state = state_.load(std::memory_order_acquire);
    if (!same()) return state;
    ++asleep_;
    for (; same(); state = state_.load(std::memory_order_acquire))
      state_.wait(state, std::memory_order_acquire);
    --asleep_;
    return state;
  }
  void work() {
    inside = true;
    for (uint32_t seen = 0; !stop_;) {
      uint32_t state = next_job(seen);
      seen = state / kJob;
      // The job may be read once it is joined: the next one waits until all have left.
      while ((state & kSeats) && state / kJob == seen)
        if (state_.compare_exchange_weak(state, state - kSeat + 1, std::memory_order_acq_rel)) {
          help();
          leave();
          break;
        }
    }
  }
  void leave() {
    if (joined(state_.fetch_sub(1, std::memory_order_acq_rel)) > 1) return;
    left_.fetch_add(1, std::memory_order_release);
    left_.notify_one();
  }

  // On separate cache lines: the word that workers wait on, the counter of pieces, and read-only data.
  alignas(64) std::atomic<uint32_t> state_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) Job job_;
  const int spins_;
  std::vector<std::thread> threads_;
  std::mutex busy_;
  std::atomic<uint32_t> asleep_{0};
  std::atomic<uint32_t> left_{
      0};  ///< how often the last worker of a job has left it: where the caller sleeps
  std::mutex failing_;
  std::exception_ptr failed_;  // the first on a worker; read after all have left the job
};

// A forked child has none of its parent's threads. It abandons their pool without joining, and makes its own
// on demand.
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

std::shared_ptr<Pool> shared_pool(int threads) {
  std::lock_guard lock(shared().mutex);
  if (!shared().pool) shared().pool = std::make_shared<Pool>(threads - 1);
  return shared().pool;
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
  const Job job{n, std::min(n / std::max<int64_t>(grain, 1), int64_t{4} * threads), body, context};
  if (threads == 1 || job.pieces <= 1) return body(context, 0, n);
  const std::shared_ptr<Pool> pool = shared_pool(threads);
  struct Inside {
    Inside() { inside = true; }
    ~Inside() { inside = false; }
  } const here;
  if (pool->run(job)) return;
  for (int64_t i = 0; i < job.pieces; ++i) job.run(i);  // the same pieces
}

}  // namespace weft

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

/// Pieces of [0, n), as even as they come.
struct Job {
  int64_t n = 0, pieces = 0;
  ParallelBody body = nullptr;
  void* context = nullptr;

  void run(int64_t i) const { body(context, n * i / pieces, n * (i + 1) / pieces); }
};

// One job at a time. Its pieces are taken by an atomic counter, so a job needs nobody but its caller: workers
// that are awake join it, and the caller waits for those that did, not for those still waking up. A second
// caller that finds the pool busy runs its job alone: two sessions on two threads then use two cores without
// waiting for each other.
//
// Waking a thread takes longer than a small matmul. So workers stay awake for a while after a job, and sleep
// when no other comes. A job of few pieces has as few seats: the caller would have to wait for every further
// worker to come and go.
class Pool {
 public:
  explicit Pool(int workers) : spins_(workers < cores() ? kSpins : 0) {
    try {
      for (int i = 0; i < std::min<int>(workers, kMostWorkers); ++i)
        threads_.emplace_back([this] { work(); });
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

  bool run(const Job& job) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    job_ = job;
    next_.store(0, std::memory_order_relaxed);
    failed_ = nullptr;
    const auto seats = static_cast<uint32_t>(std::min<int64_t>(job.pieces - 1, std::ssize(threads_)));
    {
      const Closed at_the_end{*this};
      // In one order with the looks for sleepers.
      state_.exchange(((state_.load(std::memory_order_relaxed) & ~(kJob - 1)) + kJob) | seats * kSeat);
      wake(seats);
      take_pieces();
    }
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    return true;
  }

 private:
  // The state: how many workers have joined the job, how many more may, and a number that tells jobs apart.
  static constexpr uint32_t kMostWorkers = 1023, kSeat = 1024, kSeats = kMostWorkers * kSeat,
                            kJob = 1024 * kSeat;
  static constexpr int kSpins = 4096;  // tens of microseconds, by the kind of core

  static uint32_t joined(uint32_t state) { return state & kMostWorkers; }

  /// The end of a job, also where a piece has thrown: nobody is in it any more.
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

  /// As many sleepers as it takes to fill the seats beside those who are awake.
  void wake(uint32_t seats) {
    const uint32_t asleep = asleep_.load(), awake = static_cast<uint32_t>(threads_.size()) - asleep;
    if (seats <= awake) return;
    if (2 * (seats - awake) > asleep) return state_.notify_all();
    for (uint32_t i = awake; i < seats; ++i) state_.notify_one();
  }
  void take_pieces() {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < job_.pieces;) job_.run(i);
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
  /// The state once another job than `seen` is there: awake at first, then asleep.
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
      // What the job is may be read once it has been joined: the next one waits for that.
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

  // On lines of their own: what waiting workers look at, what each piece changes, and what all read.
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

#include "base/thread_pool.h"

#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace weft {
namespace {

// Workers wait for one job at a time; pieces are taken by an atomic counter. A second caller that finds the
// pool busy runs its job alone: two sessions on two threads then use two cores without waiting for each
// other.
class Pool {
 public:
  explicit Pool(int workers) {
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (
        const std::system_error& e) {  // the machine has no more: the work is done all the same, by fewer
      warn("{} of {} threads could be started: {}", threads_.size(), workers, e.what());
    }
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& t : threads_) t.join();
  }
  int workers() const { return static_cast<int>(threads_.size()); }

  bool run(int64_t n, int64_t piece, ParallelBody body, void* context) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy) return false;
    {
      std::lock_guard lock(mutex_);
      n_ = n, piece_ = piece, body_ = body, context_ = context;
      next_ = 0, active_ = workers(), ++generation_;
    }
    wake_.notify_all();
    take_pieces();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return active_ == 0; });
    return true;
  }

 private:
  void take_pieces() {
    for (int64_t at; (at = next_.fetch_add(piece_)) < n_;) body_(context_, at, std::min(at + piece_, n_));
  }
  void work();

  std::vector<std::thread> threads_;
  std::mutex busy_, mutex_;
  std::condition_variable wake_, done_;
  uint64_t generation_ = 0;
  bool stop_ = false;
  int active_ = 0;
  int64_t n_ = 0, piece_ = 1;
  std::atomic<int64_t> next_{0};
  ParallelBody body_ = nullptr;
  void* context_ = nullptr;
};

thread_local bool inside =
    false;  // a worker, or a caller whose pieces run now: nested calls stay on this thread

void Pool::work() {
  inside = true;
  for (uint64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
    }
    take_pieces();
    std::lock_guard lock(mutex_);
    if (--active_ == 0) done_.notify_one();
  }
}

struct Shared {
  std::mutex mutex;
  int wanted = 0;
  std::shared_ptr<Pool> pool;
};
Shared& shared() {
  static Shared s;
  return s;
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
  return wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
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
  inside = true;
  if (!pool || !pool->run(n, piece, body, context)) body(context, 0, n);
  inside = false;
}

}  // namespace weft

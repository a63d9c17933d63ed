#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "memory.hpp"

// An ordered queue on its own thread, late on purpose: it pauses at random before each task.
namespace far {

/// The number of tasks of a queue that have run. May be waited for after the queue is closed.
class Progress {
 public:
  void add() {
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
  }
  /// The number reached after waiting for `point`, at most so long.
  uint64_t await(uint64_t point, uint64_t nanoseconds) {
    std::unique_lock lock(mutex_);
    const auto reached = [&] { return done_ >= point; };
    if (nanoseconds > kLongest)
      changed_.wait(lock, reached);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(nanoseconds), reached);
    return done_;
  }

 private:
  static constexpr uint64_t kLongest = uint64_t{1} << 60;  // 36 years; more would overflow a clock
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t done_ = 0;
};

/// One launch or copy that has been queued. `holds` are the buffers that it touches.
struct Task {
  std::string name;
  std::vector<void*> holds;
  std::function<Outcome()> run;
};

class Queue {
 public:
  Queue(Memory& memory, uint32_t seed) : memory_(memory), random_(seed), worker_([this] { work(); }) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  Memory& memory() { return memory_; }

  void push(Task task) {
    for (void* buffer : task.holds) memory_.hold(buffer, this, task.name);
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      ++pushed_;
    }
    changed_.notify_all();
  }
  /// The point after all pushed tasks: their number.
  uint64_t mark() {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  const std::shared_ptr<Progress>& progress() const { return progress_; }
  /// Waits until all pushed tasks have run; keeps the errors.
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }
  /// The first error since the last call.
  Outcome synchronize() {
    drain();
    const std::lock_guard lock(mutex_);
    return std::exchange(error_, Outcome::ok());
  }
  /// Reported at the next synchronize, unless there is an earlier error.
  void fail_later(Outcome outcome) {
    const std::lock_guard lock(mutex_);
    if (error_.good()) error_ = std::move(outcome);
  }

 private:
  static double delay_from_environment() {
    const char* text = std::getenv("WEFT_FAR_DELAY_US");
    return text != nullptr ? std::atof(text) : 20.0;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      if (mean_delay_us_ > 0) {
        std::exponential_distribution<double> delay(1.0 / mean_delay_us_);
        std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(delay(random_)));
      }
      perform(task);
      for (void* buffer : task.holds) memory_.release(buffer, this);
      task = {};
      lock.lock();
      busy_ = false;
      progress_->add();
      changed_.notify_all();
    }
  }

  void perform(Task& task) {
    weft_error error{.size = sizeof error};
    const weft_code code = weft::backend::guarded(&error, task.run);
    if (code != WEFT_OK) fail_later({code, error.text});
  }

  Memory& memory_;
  const double mean_delay_us_ = delay_from_environment();  // read here, not on the worker
  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  uint64_t pushed_ = 0;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  Outcome error_;
  bool busy_ = false, closing_ = false;
  std::thread worker_;  // last: it uses all members above
};

}  // namespace far

#pragma once
#include <atomic>
#include <vector>

#include "seam/buffer.h"
#include "seam/c_error.h"

namespace weft::seam {

/// A stream of work on a device. One thread at a time; a second one is an error, not a race.
class Queue {
 public:
  /// Holds the queue for this thread; `status` is an error where another thread holds it.
  class Turn {
   public:
    explicit Turn(Queue& queue)
        : queue_(queue), mine_(!queue.busy_.exchange(true, std::memory_order_acquire)) {}
    ~Turn() {
      if (mine_) queue_.busy_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Status status() const;

   private:
    Queue& queue_;
    bool mine_;
  };

  Queue(Device& device, weft_queue queue);
  ~Queue();
  Queue(const Queue&) = delete;

  weft_queue c() const { return queue_; }
  Device& device() const { return device_; }
  /// Waits for everything enqueued. Returns the first error of the device since the last call.
  Status synchronize();
  /// Waits like synchronize, for callers that ignore errors: an error is kept for the next synchronize.
  void drain();

  /// A point: the end of all work enqueued so far, which is flushed. Points increase. Where the backend has
  /// no points, this waits instead.
  Result<uint64_t> mark();
  /// Work enqueued from now on starts after `other`, a queue of the same device, has reached `point`, a
  /// result of its mark(). Returns at once.
  Status wait(Queue& other, uint64_t point);
  /// Waits for `point`, at most this long; returns the last point reached. From any thread.
  Result<uint64_t> await(uint64_t point, uint64_t nanoseconds = UINT64_MAX);
  /// The last point reached.
  Result<uint64_t> reached() { return await(0, 0); }
  /// The device's clock, where the backend has one: it notes the time when it comes to this place.
  Status stamp();
  /// Waits for the stamps since the last call. Nanoseconds of each since the first of them.
  Result<std::vector<uint64_t>> read_stamps();
  bool has_stamps() const;

  Status copy_in(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  Status copy_out(void* to, const Buffer& from, uint64_t offset, uint64_t bytes);
  Status copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset, uint64_t bytes);

  /// It may hold a launch that has not finished.
  void launched() { launches_.store(true, std::memory_order_relaxed); }
  bool has_launches() const { return launches_.load(std::memory_order_relaxed); }

 private:
  Status enqueue(const weft_copy& copy);
  Status finish();
  void finish_quietly();  // an error stays for the next synchronize
  bool has_points() const;

  Device& device_;
  weft_queue queue_;
  std::atomic<bool> busy_{false}, launches_{false};
  uint32_t stamps_ = 0;              // since they were read
  std::atomic<uint64_t> marked_{0};  // without points of the backend: each is reached when it is returned
  Status kept_;                      // an error that drain() found
};

}  // namespace weft::seam

#pragma once
#include <atomic>

#include "seam/buffer.h"
#include "seam/c_error.h"

namespace weft::seam {

/// A stream of work on a device. One thread at a time; a second one is an error, not a race.
class Queue {
 public:
  /// While it lives, this thread has the queue; `status` is an error where another thread has it.
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
  /// Waits for everything enqueued; an error that the device met since the last call comes out here.
  Status synchronize();
  /// Waits as synchronize does, for callers that ignore errors: one that it meets stays for the next
  /// synchronize.
  void drain();

  /// A point: the end of all that is enqueued so far, which begins to run. Points grow. Where the backend has
  /// no points of its own, this waits instead.
  Result<uint64_t> mark();
  /// What is enqueued from now on begins after `other`, a queue of the same device, has reached `point`,
  /// which its mark gave. Returns at once.
  Status wait(Queue& other, uint64_t point);
  /// How far the queue has come, after waiting for `point`, but at most so long. From any thread.
  Result<uint64_t> await(uint64_t point, uint64_t nanoseconds = UINT64_MAX);
  /// How far the queue has come.
  Result<uint64_t> reached() { return await(0, 0); }
  Status copy_in(const Buffer& to, uint64_t offset, const void* from, uint64_t bytes);
  Status copy_out(void* to, const Buffer& from, uint64_t offset, uint64_t bytes);
  Status copy(const Buffer& to, uint64_t to_offset, const Buffer& from, uint64_t from_offset, uint64_t bytes);

  /// A launch is in it that may not have passed.
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
  std::atomic<uint64_t> marked_{0};  // where the backend has no points: each is reached when it is given
  Status kept_;                      // an error that drain() met
};

}  // namespace weft::seam

#pragma once
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "seam/queue.h"

namespace weft::seam {

/// Uses of buffers by queues other than the eager one. All other uses are in the order of the eager queue,
/// for which sessions wait when they begin; so a use is dropped as soon as the eager queue waits for it. Of
/// ordered devices; inline queues have nothing to wait for.
class Uses {
 public:
  bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  /// `queue` uses the buffer up to this point.
  void add(const Buffer& buffer, Queue& queue, uint64_t point);
  /// Orders work enqueued on `queue` from now on after every use of the buffer by other queues.
  Status order(Queue& queue, bool eager, const Buffer& buffer);
  /// Blocks until no queue uses the buffer, which is about to be freed.
  void await(const Buffer& buffer);
  /// The queue is closed, and drained.
  void forget(const Queue& queue);

 private:
  struct Use {
    Queue* queue;
    uint64_t point;
  };
  std::mutex mutex_;
  std::unordered_map<const Buffer*, std::vector<Use>> uses_;
  std::atomic<size_t> count_{0};  // buffers
};

}  // namespace weft::seam

#include "seam/uses.h"

namespace weft::seam {

void Uses::add(const Buffer& buffer, Queue& queue, uint64_t point) {
  const std::lock_guard lock(mutex_);
  auto& uses = uses_[&buffer];
  count_.store(uses_.size(), std::memory_order_relaxed);
  for (Use& use : uses)
    if (use.queue == &queue) {
      use.point = point;
      return;
    }
  uses.push_back({&queue, point});
}

Status Uses::order(Queue& queue, bool eager, const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  const auto at = uses_.find(&buffer);
  if (at == uses_.end()) return {};
  for (const Use& use : at->second)
    if (use.queue != &queue) WEFT_CHECK(queue.wait(*use.queue, use.point));
  if (eager) uses_.erase(at), count_.store(uses_.size(), std::memory_order_relaxed);
  return {};
}

void Uses::await(const Buffer& buffer) {
  const std::lock_guard lock(mutex_);
  const auto at = uses_.find(&buffer);
  if (at == uses_.end()) return;
  for (const Use& use : at->second) (void)use.queue->await(use.point);  // a failure is its queue's to tell
  uses_.erase(at);
  count_.store(uses_.size(), std::memory_order_relaxed);
}

void Uses::forget(const Queue& queue) {
  const std::lock_guard lock(mutex_);
  for (auto at = uses_.begin(); at != uses_.end();) {
    std::erase_if(at->second, [&](const Use& use) { return use.queue == &queue; });
    at = at->second.empty() ? uses_.erase(at) : std::next(at);
  }
  count_.store(uses_.size(), std::memory_order_relaxed);
}

}  // namespace weft::seam

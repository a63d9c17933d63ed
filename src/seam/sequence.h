#pragma once
#include <span>

#include "seam/device.h"

namespace weft::seam {

/// Launches and copies on one device, recorded once and run many times with other memory for its bindings.
/// One thread at a time, like a queue. Prepared kernels and fixed memory outlive it; no run is pending when
/// it is destroyed.
class Sequence {
 public:
  /// Where the device can't record a step: Code::unsupported, with the reason, and `refused` is that step, or
  /// the number of steps if it records none of them.
  static Result<std::unique_ptr<Sequence>> record(Device& device,
                                                  std::span<const weft_sequence_step* const> steps,
                                                  uint32_t bindings, uint32_t& refused);
  ~Sequence();
  Sequence(const Sequence&) = delete;

  /// Enqueues all steps once. `handles` are the memory of the bindings in this run.
  Status run(Queue& queue, std::span<void* const> handles);

 private:
  Sequence(Device& device, weft_sequence sequence, uint32_t bindings)
      : device_(device), sequence_(sequence), bindings_(bindings) {}
  void note(const weft_sequence_step& step);
  Status check(std::span<void* const> handles) const;
  Status keep_in_flight(Queue& queue);

  Device& device_;
  weft_sequence sequence_;
  uint32_t bindings_;
  std::vector<bool> written_;       // by binding
  std::vector<const void*> fixed_;  // handles that are no binding, sorted
  uint64_t runs_ = 0;
  const Queue* marked_ = nullptr;  // the queue that was last marked, and the point
  uint64_t point_ = 0;
};

}  // namespace weft::seam

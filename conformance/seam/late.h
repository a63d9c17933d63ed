#pragma once
#include <map>

#include "conformance/seam/wrapped.h"

namespace weft::conformance {

/// A wrapped backend whose ordered queues are late: before each launch, its queue copies some memory for a
/// while. Otherwise a fast device would be done before a lie about waiting could show.
class Late : public Wrapped {
 public:
  using Wrapped::Wrapped;

  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override;
  void close_queue(weft_queue q) override;
  void close_device(weft_device d) override;
  weft_code launch(const weft_launch* l, weft_error* e) override;

 protected:
  /// Work for a few hundred microseconds, which touches nothing of the host's.
  weft_code lag(weft_queue q, weft_error* e);
  /// A copy that takes long, between buffers of its own; of a device with an open queue.
  struct Idle {
    void *from = nullptr, *to = nullptr;
    uint64_t bytes = 0;
    int times = 0;
    weft_copy copy() const;
  };
  Idle idle_of(weft_device d);

 private:
  weft_code prepare_idle(weft_device d, weft_queue q, weft_error* e);
  weft_code copy_idle(const Idle& idle, weft_queue q, weft_error* e);

  std::mutex mutex_;
  std::map<weft_device, Idle> idle_;
  std::map<weft_queue, weft_device> devices_;
};

}  // namespace weft::conformance

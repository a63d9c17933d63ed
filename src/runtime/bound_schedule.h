#pragma once
#include <functional>

#include "link/schedule.h"
#include "runtime/staging.h"
#include "runtime/trace.h"
#include "seam/sequence.h"

namespace weft::runtime {

/// A schedule with its memory and its launches, prepared once. Devices that can record take its steps as
/// sequences at the second run. The memory outlives it.
class BoundSchedule {
 public:
  using Queues = std::span<const std::unique_ptr<seam::Queue>>;  // by device of the schedule
  /// Gives the memory of a slot that is no port; null for a packed weight that is to be staged.
  using Home = std::function<seam::Buffer*(const link::BufferAllocation&)>;

  static std::unique_ptr<BoundSchedule> make(link::Schedule schedule, Queues queues, const Home& home);

  const link::Schedule& schedule() const { return schedule_; }
  /// Sets the memory of the ports for the next runs: inputs, then outputs.
  void bind(std::vector<seam::BufferRef> ports);
  void unbind() { ports_.clear(); }
  const std::vector<seam::BufferRef>& ports() const { return ports_; }
  bool is_bound() const { return ports_.size() == port_count(); }
  size_t port_count() const { return schedule_.inputs.size() + schedule_.outputs.size(); }
  /// Memory for ports of callers that have none on the device; allocated on first use.
  Result<const std::vector<seam::BufferRef>*> own_ports();

  /// Whether it has packed weights without memory. Then stage() comes before the first run.
  bool lacks_weights() const { return !lacking_.empty(); }
  /// Runs pack these weights, each before the step that reads it.
  Status stage(Staging::Pack pack);
  /// The weights have memory now.
  void settle(const Home& home);

  const seam::Buffer& memory(int32_t slot) const { return *memory_[static_cast<size_t>(slot)]; }

  /// Enqueues every step; waits for nothing, or, for a trace, for each step. Ports must be bound.
  Status enqueue(Trace* trace = nullptr);
  /// How many of the steps are recorded; for tests and benchmarks.
  size_t recorded() const;

 private:
  // Steps [first, last) are run by the sequence, or launched one by one where there is none.
  struct Stretch {
    size_t first = 0, last = 0;
    std::unique_ptr<seam::Sequence> sequence;
  };
  explicit BoundSchedule(link::Schedule schedule, Queues queues)
      : schedule_(std::move(schedule)), queues_(queues) {}
  void find_memory(const Home& home);
  void point(int32_t slot, seam::Buffer* memory);
  uint32_t layout_of(const link::BufferAllocation& slot) const;
  void make_launches();
  Status record();
  Status record_stretches();
  Result<size_t> record(size_t first, size_t last);
  void add_stretch(Stretch stretch);
  bool recordable(size_t step) const;
  Status enqueue_each(size_t first, size_t last);
  Status enqueue_traced(Trace& trace);
  Status enqueue_sequence(const Stretch& stretch);
  Status enqueue_copy(const link::Step& step);
  friend class StretchDesc;

  link::Schedule schedule_;
  Queues queues_;
  std::vector<seam::BufferRef> own_, ports_;
  std::vector<uint32_t> external_;            // the slots of the ports
  std::vector<seam::Buffer*> memory_;         // by slot
  std::vector<int32_t> lacking_;              // slots of packed weights without memory of their own
  std::unique_ptr<Staging> staging_;          // of these
  std::vector<weft_tensor> tensors_;          // by slot
  std::vector<const weft_tensor*> operands_;  // of all steps, one after the other
  std::vector<weft_launch> launches_;         // by step; without a plan for a copy
  std::vector<Stretch> stretches_;            // empty until recorded
  std::vector<void*> handles_;                // of the ports
  int runs_ = 0;
};

}  // namespace weft::runtime

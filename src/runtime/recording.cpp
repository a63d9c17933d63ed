#include <deque>

#include "runtime/bound_schedule.h"

// The steps of a schedule as sequences of its devices.
namespace weft::runtime {

/// Steps [first, last) of a schedule as the contract describes them: ports are bindings.
class StretchDesc {
 public:
  StretchDesc(const BoundSchedule& bound, size_t first, size_t last) : bound_(bound) {
    tensors_ = bound.tensors_;
    for (const uint32_t i : bound.external_) {
      tensors_[i].dl.data = nullptr;
      tensors_[i].alignment = tensors_[i].dl.dtype.bits / 8;  // each run comes with other memory
      tensors_[i].binding = 1 + static_cast<uint32_t>(bound.schedule_.slots[i].index);
    }
    for (size_t i = first; i < last; ++i) add(i, first);
    for (const auto& step : steps_) pointers_.push_back(&step.c);
  }
  StretchDesc(const StretchDesc&) = delete;
  std::span<const weft_sequence_step* const> steps() const { return pointers_; }

 private:
  struct Step {
    std::vector<const weft_tensor*> inputs, outputs;
    std::vector<uint32_t> after;
    weft_launch launch;
    weft_copy copy;
    weft_sequence_step c;
  };

  const weft_tensor* tensor(int32_t slot) const {
    return slot < 0 ? nullptr : &tensors_[static_cast<size_t>(slot)];
  }

  void add(size_t i, size_t first) {
    const link::Step& from = bound_.schedule_.steps[i];
    Step& step = steps_.emplace_back();
    for (const uint32_t earlier : from.after)
      if (earlier >= first) step.after.push_back(earlier - static_cast<uint32_t>(first));
    step.c = {.size = sizeof(weft_sequence_step),
              .lane = from.lane,
              .launch = nullptr,
              .copy = nullptr,
              .after = step.after.data(),
              .n_after = static_cast<uint32_t>(step.after.size()),
              .reserved = 0};
    if (!from.prepared) return add_copy(from, step);
    for (const int32_t s : from.inputs) step.inputs.push_back(tensor(s));
    for (const int32_t s : from.outputs) step.outputs.push_back(tensor(s));
    step.launch = bound_.launches_[i];
    step.launch.queue = nullptr;
    step.launch.inputs = step.inputs.data();
    step.launch.outputs = step.outputs.data();
    step.launch.workspace = tensor(from.workspace);
    step.c.launch = &step.launch;
  }

  void add_copy(const link::Step& from, Step& step) {
    const weft_tensor &source = *tensor(from.inputs[0]), &target = *tensor(from.outputs[0]);
    step.copy = {.size = sizeof(weft_copy),
                 .reserved = 0,
                 .source = source.dl.data,
                 .source_offset = source.dl.byte_offset,
                 .target = target.dl.data,
                 .target_offset = target.dl.byte_offset,
                 .host_source = nullptr,
                 .host_target = nullptr,
                 .bytes = bound_.schedule_.slots[static_cast<size_t>(from.inputs[0])].type.bytes(),
                 .source_binding = source.binding,
                 .target_binding = target.binding};
    step.c.copy = &step.copy;
  }

  const BoundSchedule& bound_;
  std::vector<weft_tensor> tensors_;  // by slot
  std::deque<Step> steps_;            // a deque: what points into them stays right
  std::vector<const weft_sequence_step*> pointers_;
};

bool BoundSchedule::recordable(size_t i) const {
  const link::Step& step = schedule_.steps[i];
  if (step.prepared) return step.prepared->kernel.flags & WEFT_KERNEL_RECORDABLE;
  return schedule_.slots[static_cast<size_t>(step.inputs[0])].device == step.device;
}

// Records steps [first, last), or as many as the device can. Returns the first step that was not recorded.
Result<size_t> BoundSchedule::record(size_t first, size_t last) {
  const size_t end = last;
  while (last > first + 1) {  // one step alone gains nothing
    const StretchDesc desc(*this, first, last);
    uint32_t refused = 0;
    auto made = seam::Sequence::record(*schedule_.devices[schedule_.steps[first].device], desc.steps(),
                                       static_cast<uint32_t>(port_count()), refused);
    if (made.ok()) {
      add_stretch({first, last, std::move(made).value()});
      return last;
    }
    if (made.status().code() != Code::unsupported) return made.take_status();
    if (refused >= last - first) return end;  // it records nothing
    last = first + refused;
  }
  return last;
}

// Steps between two sequences are launched one by one.
void BoundSchedule::add_stretch(Stretch stretch) {
  const size_t done = stretches_.empty() ? 0 : stretches_.back().last;
  if (done < stretch.first) stretches_.push_back({done, stretch.first, nullptr});
  stretches_.push_back(std::move(stretch));
}

Status BoundSchedule::record() {
  Status s = record_stretches();
  if (!s.ok()) stretches_.clear();  // some of the steps are no schedule
  return s;
}

Status BoundSchedule::record_stretches() {
  const auto can = [](const seam::Device* d) { return d->backend().make_sequence != nullptr; };
  if (std::ranges::none_of(schedule_.devices, can)) return {};
  WEFT_CHECK(link::check_dependencies(schedule_));
  const auto& steps = schedule_.steps;
  for (size_t i = 0; i < steps.size(); ++i) {  // the one at which a stretch ends is in none
    size_t last = i;
    while (last < steps.size() && steps[last].device == steps[i].device && recordable(last)) ++last;
    if (last > i) {
      WEFT_TRY(i, record(i, last));
    }
  }
  if (!stretches_.empty() && stretches_.back().last < steps.size())
    stretches_.push_back({stretches_.back().last, steps.size(), nullptr});
  return {};
}

size_t BoundSchedule::recorded() const {
  size_t n = 0;
  for (const Stretch& s : stretches_)
    if (s.sequence) n += s.last - s.first;
  return n;
}

}  // namespace weft::runtime

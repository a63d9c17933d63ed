#include "runtime/bound_schedule.h"

#include "base/shown.h"
#include "runtime/c_tensor.h"
#include "seam/ledger.h"
#include "seam/transfer.h"

namespace weft::runtime {

using Kind = link::BufferAllocation::Kind;

std::unique_ptr<BoundSchedule> BoundSchedule::make(link::Schedule schedule, Queues queues, const Home& home) {
  std::unique_ptr<BoundSchedule> bound(new BoundSchedule(std::move(schedule), queues));
  bound->find_memory(home);
  bound->make_launches();
  return bound;
}

void BoundSchedule::find_memory(const Home& home) {
  for (size_t i = 0; i < schedule_.slots.size(); ++i) {
    const auto& slot = schedule_.slots[i];
    const bool external = slot.kind == Kind::external;  // bound by each run
    if (external) external_.push_back(static_cast<uint32_t>(i));
    memory_.push_back(external ? nullptr : home(slot));
    if (slot.packed >= 0 && !memory_.back()) lacking_.push_back(static_cast<int32_t>(i));
  }
}

uint32_t BoundSchedule::layout_of(const link::BufferAllocation& slot) const {
  return slot.packed < 0 ? 0 : schedule_.packed[static_cast<size_t>(slot.packed)].packing().layout;
}

void BoundSchedule::make_launches() {
  for (size_t i = 0; i < schedule_.slots.size(); ++i) {
    const auto& slot = schedule_.slots[i];
    tensors_.push_back(c_tensor(memory_[i] ? memory_[i]->handle : nullptr, slot.type,
                                *schedule_.devices[slot.device], layout_of(slot), slot.offset));
  }
  size_t n = 0;
  for (const auto& step : schedule_.steps) n += step.inputs.size() + step.outputs.size();
  operands_.reserve(n);  // launches point into it
  const auto add = [&](const std::vector<int32_t>& slots) {
    const auto* first = operands_.data() + operands_.size();
    for (const int32_t s : slots) operands_.push_back(s < 0 ? nullptr : &tensors_[static_cast<size_t>(s)]);
    return first;
  };
  for (const auto& step : schedule_.steps) {
    weft_launch l{.size = sizeof(weft_launch),
                  .reserved = 0,
                  .plan = step.prepared ? &step.prepared->plan : nullptr,
                  .device = schedule_.devices[step.device]->c(),
                  .queue = queues_[step.device]->c(),
                  .inputs = nullptr,
                  .outputs = nullptr,
                  .workspace = nullptr};
    l.inputs = add(step.inputs), l.outputs = add(step.outputs);
    if (step.workspace >= 0) l.workspace = &tensors_[static_cast<size_t>(step.workspace)];
    launches_.push_back(l);
  }
}

void BoundSchedule::point(int32_t slot, seam::Buffer* memory) {
  const auto i = static_cast<size_t>(slot);
  memory_[i] = memory;
  tensors_[i].dl.data = memory->handle;
  tensors_[i].alignment = memory->alignment();
}

Status BoundSchedule::stage(Staging::Pack pack) {
  auto staging = std::make_unique<Staging>(schedule_, lacking_, std::move(pack));
  WEFT_CHECK(staging->open());
  staging_ = std::move(staging);
  for (const int32_t slot : lacking_) point(slot, &staging_->memory());
  return {};
}

void BoundSchedule::settle(const Home& home) {
  for (const int32_t slot : lacking_) point(slot, home(schedule_.slots[static_cast<size_t>(slot)]));
  lacking_.clear();
  staging_.reset();
}

void BoundSchedule::bind(std::vector<seam::BufferRef> ports) {
  ports_ = std::move(ports);
  handles_.clear();
  for (const auto& port : ports_) handles_.push_back(port->handle);
  for (const uint32_t i : external_) {
    point(static_cast<int32_t>(i), ports_[static_cast<size_t>(schedule_.slots[i].index)].get());
  }
}

Result<const std::vector<seam::BufferRef>*> BoundSchedule::own_ports() {
  if (own_.size() != port_count()) {
    std::vector<seam::BufferRef> made;
    for (const auto* list : {&schedule_.inputs, &schedule_.outputs})
      for (const int32_t s : *list) {
        const auto& slot = schedule_.slots[static_cast<size_t>(s)];
        WEFT_TRY(auto buffer, schedule_.devices[0]->allocate_unpooled(slot.type.bytes()));
        made.push_back(std::move(buffer));
      }
    own_ = std::move(made);
  }
  return &own_;
}

Status BoundSchedule::enqueue(Trace* trace) {
  if (trace) [[unlikely]]
    return enqueue_traced(*trace);
  // The first run may be the only one. A run that fails to record leaves it to the next.
  if (runs_ == 1) WEFT_CHECK(record());
  if (runs_ < 2) ++runs_;
  if (stretches_.empty()) return enqueue_each(0, schedule_.steps.size());
  for (const Stretch& s : stretches_)
    WEFT_CHECK(s.sequence ? enqueue_sequence(s) : enqueue_each(s.first, s.last));
  return {};
}

Status BoundSchedule::enqueue_sequence(const Stretch& s) {
  for (size_t i = s.first; i < s.last; ++i)
    if (auto* prepared = schedule_.steps[i].prepared.get()) prepared->count();
  return s.sequence->run(*queues_[schedule_.steps[s.first].device], handles_);
}

Status BoundSchedule::enqueue_each(size_t first, size_t last) {
  seam::CError error;
  for (size_t i = first; i < last; ++i) {
    const weft_launch& l = launches_[i];
    const link::Step& step = schedule_.steps[i];
    if (staging_) [[unlikely]]
      WEFT_CHECK(staging_->before(i));
    if (!l.plan) [[unlikely]] {
      WEFT_CHECK(enqueue_copy(step).at("copy"));
      continue;
    }
    seam::PreparedKernel& prepared = *step.prepared;
    const weft_code code = prepared.kernel.launch(&l, error.out());
    prepared.count();
    if (code != WEFT_OK) [[unlikely]]
      return error.status(code).at(
          fmt::format("{} ({})", prepared.kernel.id, shown_node(step.where, step.from)));
  }
  return {};
}

Status BoundSchedule::enqueue_traced(Trace& trace) {
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    const link::Step& step = schedule_.steps[i];
    if (staging_) {
      const Trace::Timed timed(&trace, "load", "pack", step.where);
      WEFT_CHECK(staging_->before(i));
    }
    const Trace::Timed timed(&trace, step.prepared ? "kernel" : "copy",
                             step.prepared ? step.prepared->kernel.id : "copy", step.where);
    WEFT_CHECK(enqueue_each(i, i + 1));
    for (const auto& queue : queues_) WEFT_CHECK(queue->synchronize());
  }
  return {};
}

Status BoundSchedule::enqueue_copy(const link::Step& step) {
  const auto& from = schedule_.slots[static_cast<size_t>(step.inputs[0])];
  const auto& to = schedule_.slots[static_cast<size_t>(step.outputs[0])];
  const auto &source = memory(step.inputs[0]), &target = memory(step.outputs[0]);
  const uint64_t bytes = from.type.bytes();
  if (from.device == to.device)
    return queues_[to.device]->copy(target, to.offset, source, from.offset, bytes);
  WEFT_CHECK(seam::transfer(*queues_[from.device], {source, from.offset}, *queues_[to.device],
                            {target, to.offset}, bytes));
  seam::ledger().copied(schedule_.devices[from.device]->name(), schedule_.devices[to.device]->name(), bytes);
  return {};
}

}  // namespace weft::runtime

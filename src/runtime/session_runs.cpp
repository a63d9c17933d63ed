#include <algorithm>

#include "base/shown.h"
#include "link/resolve_types.h"
#include "runtime/busy.h"
#include "runtime/session.h"

// The runs of a session: inputs, steps, outputs, and their order among the other work on the same memory.
namespace weft::runtime {

static std::vector<HostView> views(std::span<const HostTensor> tensors) {
  std::vector<HostView> all;
  for (const HostTensor& t : tensors) all.push_back({t.type, t.bytes});
  return all;
}

Status Session::check_bytes(std::span<const HostView> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].bytes.size() != inputs[i].type.bytes())
      return invalid("input {} of {} is {}, got {} bytes", shown(program_->inputs[i].name),
                     shown(program_->name), text(inputs[i].type), inputs[i].bytes.size());
  return {};
}

Status Session::use_own_ports() {
  WEFT_TRY(const auto* own, current_->own_ports());
  const auto same = [](const auto& a, const auto& b) { return a.get() == b.get(); };
  if (!std::ranges::equal(current_->ports(), *own, same)) current_->bind(*own);
  return {};
}

Status Session::put(std::span<const HostView> inputs) {
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  WEFT_CHECK(check_bytes(inputs));
  WEFT_CHECK(use_own_ports());
  const Trace::Timed timed(trace_, "copy", "inputs");
  for (size_t i = 0; i < inputs.size(); ++i)
    WEFT_CHECK(
        queues_[0]->copy_in(*current_->ports()[i].get(), 0, inputs[i].bytes.data(), inputs[i].bytes.size()));
  return {};
}

static Status none_being_prepared() {
  if (!seam::Together::open()) return {};
  return invalid("execute: the kernels that this thread prepares are not finished");
}

Status Session::enqueue() {
  if (!current_ || !current_->is_bound()) return invalid("execute: set_inputs comes first");
  WEFT_CHECK(none_being_prepared());
  return shared_.empty() ? run_steps() : enqueue_in_turn({});
}

// The first run may be the only one: it packs weights as it goes (staging.h).
Status Session::run_steps() {
  if (ran_ && may_stage_) WEFT_CHECK(pack_staged());
  ran_ = true;
  return current_->enqueue(trace_);
}

// Orders the run among the other work on the ports and on shared memory.
Status Session::enqueue_in_turn(std::span<const seam::BufferRef> ports) {
  WEFT_CHECK(follow_eager(ports));
  const Status enqueued = run_steps();
  const Status marked = leave_to_eager(ports);  // of a failed run too: some of its steps may run
  WEFT_CHECK(enqueued);
  return marked;
}

Result<std::vector<HostTensor>> Session::take() {
  if (!current_ || !current_->is_bound()) return invalid("outputs: set_inputs comes first");
  WEFT_CHECK(synchronize());
  const Trace::Timed timed(trace_, "copy", "outputs");
  std::vector<HostTensor> out;
  for (const int32_t s : schedule().outputs) {
    const auto& type = slot(s).type;
    out.push_back({type, std::vector<std::byte>(type.bytes())});
    WEFT_CHECK(
        queues_[0]->copy_out(out.back().bytes.data(), current_->memory(s), slot(s).offset, type.bytes()));
  }
  return out;
}

Result<std::vector<HostTensor>> Session::run(std::span<const HostTensor> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  WEFT_CHECK(put(views(inputs)));
  WEFT_CHECK(enqueue());
  return take();
}

Status Session::run_into(std::span<const HostView> inputs, std::span<const std::span<std::byte>> outputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  if (outputs.size() != program_->outputs.size())
    return invalid("{} gives {} outputs, got memory for {}", program_->name, program_->outputs.size(),
                   outputs.size());
  WEFT_CHECK(put(inputs));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].empty()) WEFT_CHECK(check_output(i, outputs[i].size()));
  WEFT_CHECK(enqueue());
  WEFT_CHECK(synchronize());
  const Trace::Timed timed(trace_, "copy", "outputs");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].empty()) WEFT_CHECK(copy_output(i, outputs[i]));
  return {};
}

Result<std::vector<seam::ConcreteType>> Session::output_types(std::span<const HostView> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  std::vector<seam::ConcreteType> out;
  for (const int32_t s : schedule().outputs) out.push_back(slot(s).type);
  return out;
}

Status Session::check_output(size_t i, size_t bytes) const {
  const auto& type = slot(schedule().outputs[i]).type;
  if (bytes == type.bytes()) return {};
  return invalid("output {} of {} is {}, {} bytes; got memory for {}", program_->outputs[i].name,
                 program_->name, text(type), type.bytes(), bytes);
}

Status Session::copy_output(size_t i, std::span<std::byte> to) {
  const int32_t from = schedule().outputs[i];
  return queues_[0]->copy_out(to.data(), current_->memory(from), slot(from).offset, to.size());
}

Status Session::fetch(size_t output, std::span<std::byte> to) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  if (!current_ || !current_->is_bound())
    return invalid("{} has no outputs: it did not run yet", program_->name);
  if (output >= program_->outputs.size())
    return invalid("{} gives {} outputs, there is no number {}", program_->name, program_->outputs.size(),
                   output);
  WEFT_CHECK(check_output(output, to.size()));
  return copy_output(output, to);
}

Result<std::vector<DeviceArray>> Session::run_on(std::span<const DeviceArray> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  SmallVector<const seam::ConcreteType*, 8> types;
  for (const auto& in : inputs) types.push_back(&in.type);
  WEFT_CHECK(choose_schedule(types));
  std::vector<seam::BufferRef> ports;
  for (const auto& in : inputs) ports.push_back(in.buffer);
  std::vector<DeviceArray> out;
  for (const int32_t s : schedule().outputs) {
    WEFT_TRY(auto buffer, device().allocate(slot(s).type.bytes()));
    ports.push_back(buffer);
    out.push_back({slot(s).type, std::move(buffer)});
  }
  WEFT_CHECK(none_being_prepared());
  current_->bind(ports);
  const Status enqueued = enqueue_in_turn(ports);
  current_->unbind();
  WEFT_CHECK(enqueued);
  return out;
}

// Orders the run after work of other queues on the ports and on shared memory.
Status Session::follow_eager(std::span<const seam::BufferRef> ports) {
  if (!device().ordered()) return {};
  uint64_t point = 0;
  {
    const std::lock_guard lock(device().eager_mutex());
    WEFT_TRY(point, device().eager_queue().mark());
  }
  WEFT_CHECK(queues_[0]->wait(device().eager_queue(), point));
  for (const auto& list : {ports, std::span<const seam::BufferRef>(shared_)})
    for (const auto& buffer : list) WEFT_CHECK(device().order(*queues_[0], *buffer.get()));
  return {};
}

// Later uses of that memory are ordered after this run.
Status Session::leave_to_eager(std::span<const seam::BufferRef> ports) {
  if (!device().ordered()) return {};
  WEFT_TRY(const uint64_t point, queues_[0]->mark());
  for (const auto& list : {ports, std::span<const seam::BufferRef>(shared_)})
    for (const auto& buffer : list) device().used(*buffer.get(), *queues_[0], point);
  return {};
}

Status Session::wait() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return synchronize();
}

Status Session::set_inputs(std::span<const HostTensor> inputs) {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return put(views(inputs));
}

Status Session::execute() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return enqueue();
}

Result<std::vector<HostTensor>> Session::outputs() {
  const Busy busy(busy_);
  WEFT_CHECK(busy.status());
  return take();
}

}  // namespace weft::runtime

#include "seam/sequence.h"

#include <algorithm>

namespace weft::seam {
namespace {

// Waits for half of the pending runs at a time, so that the device stays busy.
constexpr uint32_t kInFlight = 16;

}  // namespace

Result<std::unique_ptr<Sequence>> Sequence::record(Device& device,
                                                   std::span<const weft_sequence_step* const> steps,
                                                   uint32_t bindings, uint32_t& refused) {
  const auto& backend = device.backend();
  refused = static_cast<uint32_t>(steps.size());
  if (!backend.make_sequence) return fail(Code::unsupported, "{} records no sequences", device.name());
  const weft_sequence_desc desc{.size = sizeof desc,
                                .n_steps = static_cast<uint32_t>(steps.size()),
                                .steps = steps.data(),
                                .n_bindings = bindings,
                                .in_flight = kInFlight};
  CError error;
  weft_sequence made = nullptr;
  WEFT_CHECK(error.status(backend.make_sequence(device.c(), &desc, &made, &refused, error.out()))
                 .at(fmt::format("recording {} steps on {}", steps.size(), device.name())));
  std::unique_ptr<Sequence> s(new Sequence(device, made, bindings));
  s->written_.resize(bindings);
  for (const auto* step : steps) s->note(*step);
  std::ranges::sort(s->fixed_);
  return s;
}

Sequence::~Sequence() { device_.backend().free_sequence(sequence_); }

// The step's fixed memory, and the bindings that it writes.
void Sequence::note(const weft_sequence_step& step) {
  const auto place = [&](uint32_t binding, const void* handle, bool writes) {
    if (binding == 0)
      fixed_.push_back(handle);
    else if (writes)
      written_[binding - 1] = true;
  };
  if (step.copy) {
    place(step.copy->source_binding, step.copy->source, false);
    place(step.copy->target_binding, step.copy->target, true);
    return;
  }
  const weft_launch& l = *step.launch;
  const weft_call& call = *l.plan->call;
  for (uint32_t i = 0; i < call.n_inputs; ++i)
    if (l.inputs[i]) place(l.inputs[i]->binding, l.inputs[i]->dl.data, false);
  for (uint32_t i = 0; i < call.n_outputs; ++i) place(l.outputs[i]->binding, l.outputs[i]->dl.data, true);
  if (l.workspace) place(l.workspace->binding, l.workspace->dl.data, true);
}

Status Sequence::check(std::span<void* const> handles) const {
  if (handles.size() != bindings_)
    return invalid("a sequence of {} bindings was given {}", bindings_, handles.size());
  for (size_t k = 0; k < handles.size(); ++k) {
    if (!written_[k]) continue;
    if (std::ranges::count(handles, handles[k]) > 1)
      return invalid("binding {} is written, and another one is the same memory", k);
    if (std::ranges::binary_search(fixed_, static_cast<const void*>(handles[k])))
      return invalid("binding {} is written, and is memory that the sequence itself works in", k);
  }
  return {};
}

Status Sequence::keep_in_flight(Queue& queue) {
  if (!device_.ordered() || ++runs_ % (kInFlight / 2) != 0) return {};
  if (marked_ == &queue) WEFT_CHECK(queue.await(point_).take_status());
  marked_ = &queue;
  WEFT_TRY(point_, queue.mark());
  return {};
}

Status Sequence::run(Queue& queue, std::span<void* const> handles) {
  WEFT_CHECK(check(handles));
  {
    const Queue::Turn turn(queue);
    WEFT_CHECK(turn.status());
    CError error;
    WEFT_CHECK(error
                   .status(device_.backend().run_sequence(sequence_, queue.c(), handles.data(),
                                                          static_cast<uint32_t>(handles.size()), error.out()))
                   .at("running a sequence"));
  }
  queue.launched();
  return keep_in_flight(queue);
}

}  // namespace weft::seam

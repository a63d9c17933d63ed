#include <algorithm>

#include "link/execution_plan.h"
#include "link/lanes.h"
#include "link/order.h"
#include "link/place.h"
#include "link/share.h"

namespace weft::link {

// Slots are written and read by launches side by side, so a device that can't read and write one buffer in a
// dispatch can't have an arena.
static Status check_devices(std::span<seam::Device* const> devices) {
  if (devices.empty()) return invalid("link: no device was given");
  for (const auto* d : devices)
    if (!d->capability().read_write_buffer)
      return fail(Code::unsupported,
                  "{} can't read and write one buffer in a dispatch; arenas are not split yet", d->name());
  return {};
}

static uint64_t total(const std::vector<ArenaSize>& arenas) {
  uint64_t bytes = 0;
  for (const auto& a : arenas) bytes += a.bytes;
  return bytes;
}

// What the plan's slots take beside the arenas: states, weights, inputs and outputs.
static uint64_t bytes_beside(const ExecutionPlan& plan) {
  uint64_t bytes = 0;
  for (const auto& s : plan.slots)
    if (s.same_as < 0 && s.kind != BufferAllocation::Kind::arena) bytes += s.type.bytes();
  return bytes;
}

// Steps of different lanes may run beside each other, so what they need may not share memory. Where that
// costs more than a quarter of all that the program needs, steps follow each other where memory makes them.
static void plan_arenas(ExecutionPlan& plan) {
  set_dependencies(plan, Conflicts::values);
  const Lanes lanes(plan);
  plan.arenas = plan_memory(plan.slots, plan.devices);
  if (lanes.count() > 1) {
    auto slots = plan.slots;
    const auto arenas = plan_memory(slots, plan.devices, lanes.lifetimes(plan));
    constexpr uint64_t kHardlyAny = uint64_t{4} << 20;
    const uint64_t least = total(plan.arenas), all = least + bytes_beside(plan);
    if (total(arenas) <= least + std::max(all / 4, kHardlyAny))
      plan.slots = std::move(slots), plan.arenas = arenas, plan.lanes = lanes.count();
  }
  set_dependencies(plan);
}

// In the order that `known` gives, with what is noted in the choices; or decides both.
static std::vector<uint32_t> share_memory(const program::CompiledProgram& program, FlatProgram& flat,
                                          Devices devices, const std::vector<uint32_t>* known) {
  join_pieces(program, flat, devices);
  auto calls = free_early(program, flat, known);
  add_in_place(program, flat, devices, known != nullptr);
  reuse_operands(program, flat, devices, known != nullptr);
  return calls;
}

Result<ExecutionPlan> link(const program::CompiledProgram& program, const Bindings& bindings,
                           std::span<seam::Device* const> devices, const Policy& policy,
                           const Packings& packings, Sharing sharing) {
  WEFT_CHECK(check_devices(devices));
  WEFT_TRY(auto flat, place(program, bindings, devices, policy, packings));
  std::vector<uint32_t> calls;
  if (sharing == Sharing::all) calls = share_memory(program, flat, devices, nullptr);
  WEFT_TRY(auto plan, order(program, std::move(flat), devices));
  plan.order = std::move(calls);
  set_lifetimes(plan);
  plan_arenas(plan);
  return plan;
}

// Has each call that is prepared to add its result to something got that?
static bool adds_as_decided(const FlatProgram& flat) {
  return std::ranges::all_of(flat.calls, [&](const FlatCall& call) {
    return !call.plan || flat.choices[call.choice].adds == 0 || call.onto >= 0;
  });
}

// Slots and steps come in the same order for the same choices.
static bool fits(const ExecutionPlan& plan, const ExecutionPlan& roof) {
  const auto no_larger = [](const BufferAllocation& a, const BufferAllocation& b) {
    return a.kind == b.kind && a.index == b.index && a.device == b.device && a.packed == b.packed &&
           a.same_as == b.same_as && a.type.bytes() <= b.type.bytes();
  };
  const auto same_packing = [](const PackedWeight& a, const PackedWeight& b) {
    return std::string_view(a.packing().id) == b.packing().id;
  };
  return plan.steps.size() == roof.steps.size() && plan.choices.size() == roof.choices.size() &&
         std::ranges::equal(plan.packed, roof.packed, same_packing) &&
         std::ranges::equal(plan.slots, roof.slots, no_larger);
}

Result<ExecutionPlan> resize(const ExecutionPlan& roof, const program::CompiledProgram& program,
                             const Bindings& bindings, const Policy& policy, const Packings& packings) {
  WEFT_TRY(auto flat, place(program, bindings, roof.devices, policy, packings, &roof.choices));
  if (!roof.order.empty()) {
    const bool same = share_memory(program, flat, roof.devices, &roof.order) == roof.order;
    if (!same || !adds_as_decided(flat))
      return fail(Code::unsupported, "for these sizes, values can't share memory in the same way");
  }
  WEFT_TRY(auto plan, order(program, std::move(flat), roof.devices));
  plan.order = roof.order;
  if (!fits(plan, roof)) return fail(Code::unsupported, "for these sizes, something needs more memory");
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    BufferAllocation& slot = plan.slots[i];
    const BufferAllocation& there = roof.slots[i];
    slot.offset = there.offset, slot.first_step = there.first_step, slot.last_step = there.last_step;
    if (slot.same_as >= 0) slot.offset = roof.slots[static_cast<size_t>(slot.same_as)].offset + slot.within;
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    plan.steps[i].lane = roof.steps[i].lane;
    if (plan.steps[i].plan) plan.steps[i].plan->why = roof.steps[i].plan->why;
  }
  plan.arenas = roof.arenas, plan.lanes = roof.lanes;
  set_dependencies(plan);
  return plan;
}

}  // namespace weft::link

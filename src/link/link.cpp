#include <algorithm>

#include "link/execution_plan.h"
#include "link/order.h"
#include "link/place.h"

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

Result<ExecutionPlan> link(const program::CompiledProgram& program, const Bindings& bindings,
                           std::span<seam::Device* const> devices, const Policy& policy) {
  WEFT_CHECK(check_devices(devices));
  WEFT_TRY(auto flat, place(program, bindings, devices, policy));
  WEFT_TRY(auto plan, order(program, std::move(flat), devices));
  set_lifetimes(plan);
  plan.arenas = plan_memory(plan.slots, plan.devices);
  set_dependencies(plan);
  return plan;
}

// Slots and steps come in the same order for the same choices.
static bool fits(const ExecutionPlan& plan, const ExecutionPlan& roof) {
  const auto no_larger = [](const BufferAllocation& a, const BufferAllocation& b) {
    return a.kind == b.kind && a.index == b.index && a.device == b.device && a.same_as == b.same_as &&
           a.type.bytes() <= b.type.bytes();
  };
  return plan.steps.size() == roof.steps.size() && plan.choices.size() == roof.choices.size() &&
         std::ranges::equal(plan.slots, roof.slots, no_larger);
}

Result<ExecutionPlan> resize(const ExecutionPlan& roof, const program::CompiledProgram& program,
                             const Bindings& bindings, const Policy& policy) {
  WEFT_TRY(auto flat, place(program, bindings, roof.devices, policy, &roof.choices));
  WEFT_TRY(auto plan, order(program, std::move(flat), roof.devices));
  if (!fits(plan, roof)) return fail(Code::unsupported, "for these sizes, something needs more memory");
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    plan.slots[i].offset = roof.slots[i].offset;
    plan.slots[i].first_step = roof.slots[i].first_step, plan.slots[i].last_step = roof.slots[i].last_step;
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i].plan) plan.steps[i].plan->why = roof.steps[i].plan->why;
  plan.arenas = roof.arenas;
  set_dependencies(plan);
  return plan;
}

}  // namespace weft::link

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
                           std::span<seam::Device* const> devices, const Policy& policy,
                           const Packings& packings) {
  WEFT_CHECK(check_devices(devices));
  WEFT_TRY(auto flat, place(program, bindings, devices, policy, packings));
  WEFT_TRY(auto plan, order(program, std::move(flat), devices));
  set_lifetimes(plan);
  plan.arenas = plan_memory(plan.slots, plan.devices);
  set_dependencies(plan);
  return plan;
}

}  // namespace weft::link

#include "link/execution_plan.h"

namespace weft::link {

using Kind = BufferAllocation::Kind;

std::string print(const ExecutionPlan& plan) {
  const auto place = [&](int32_t slot) -> std::string {
    if (slot < 0) return "_";
    const auto& s = plan.slots[static_cast<size_t>(slot)];
    if (s.kind == Kind::state) return fmt::format("state{}", s.index);
    if (s.kind == Kind::weight) return fmt::format("{}weight{}", s.packed < 0 ? "" : "packed ", s.index);
    if (s.kind == Kind::external) {
      const auto inputs = static_cast<int32_t>(plan.inputs.size());
      return s.index < inputs ? fmt::format("in{}", s.index) : fmt::format("out{}", s.index - inputs);
    }
    return fmt::format("{}+{}", plan.devices[s.device]->name(), s.offset);
  };
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    text += fmt::format("{:>4}  {:<34}", i, step.plan ? step.plan->kernel.id : "copy");
    for (const int32_t s : step.inputs) text += " " + place(s);
    text += step.onto.empty() ? " ->" : " +>";
    for (const int32_t s : step.outputs) text += " " + place(s);
    text += "\n";
    if (step.plan && !step.plan->why.empty()) text += fmt::format("      because {}\n", step.plan->why);
  }
  for (size_t d = 0; d < plan.devices.size(); ++d)
    text += fmt::format("arena of {}: {} bytes, at least {} live at once\n", plan.devices[d]->name(),
                        plan.arenas[d].bytes, plan.arenas[d].live_peak);
  return text;
}

}  // namespace weft::link

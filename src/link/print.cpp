#include "link/schedule.h"

namespace weft::link {

using Kind = BufferAllocation::Kind;

std::string print(const Schedule& schedule) {
  const auto place = [&](int32_t slot) -> std::string {
    if (slot < 0) return "_";
    const auto& s = schedule.slots[static_cast<size_t>(slot)];
    if (s.kind == Kind::state) return fmt::format("state{}", s.index);
    if (s.kind == Kind::weight) return fmt::format("{}weight{}", s.packed < 0 ? "" : "packed ", s.index);
    if (s.kind == Kind::external) {
      const auto inputs = static_cast<int32_t>(schedule.inputs.size());
      return s.index < inputs ? fmt::format("in{}", s.index) : fmt::format("out{}", s.index - inputs);
    }
    return fmt::format("{}+{}", schedule.devices[s.device]->name(), s.offset);
  };
  std::string text;
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const auto& step = schedule.steps[i];
    text += fmt::format("{:>4}  {:<34}", i, step.prepared ? step.prepared->kernel.id : "copy");
    for (const int32_t s : step.inputs) text += " " + place(s);
    text += step.onto.empty() ? " ->" : " +>";
    for (const int32_t s : step.outputs) text += " " + place(s);
    text += "\n";
    if (step.prepared && !step.prepared->why.empty())
      text += fmt::format("      because {}\n", step.prepared->why);
  }
  for (size_t d = 0; d < schedule.devices.size(); ++d)
    text += fmt::format("arena of {}: {} bytes, at least {} live at once\n", schedule.devices[d]->name(),
                        schedule.arenas[d].bytes, schedule.arenas[d].live_peak);
  return text;
}

}  // namespace weft::link

#include <algorithm>

#include "link/schedule.h"

namespace weft::link {

void each_kept(const Schedule& schedule, const std::function<void(int32_t slot, uint32_t step)>& keep) {
  constexpr uint64_t kSmall = 64 << 10;  // bytes
  const auto& steps = schedule.steps;
  const auto joins = [&](const Step& s) {
    return s.prepared && s.prepared->kernel.flags & WEFT_KERNEL_JOINS;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t last = i;
    while (last + 1 < steps.size() && joins(steps[last]) && steps[last + 1].device == steps[i].device) ++last;
    for (const int32_t slot : steps[i].inputs)
      if (last > i && slot >= 0 && schedule.slots[static_cast<size_t>(slot)].type.bytes() <= kSmall)
        keep(slot, static_cast<uint32_t>(last));
  }
}

void set_lifetimes(Schedule& schedule) {
  std::vector<bool> seen(schedule.slots.size(), false);
  const auto touch = [&](int32_t slot, uint32_t at) {
    if (slot < 0) return;
    auto& s = schedule.slots[static_cast<size_t>(slot)];
    if (!seen[static_cast<size_t>(slot)]) s.first_step = at, seen[static_cast<size_t>(slot)] = true;
    s.last_step = std::max(s.last_step, at);
    if (s.same_as < 0) return;
    const auto base = static_cast<size_t>(s.same_as);
    if (!seen[base]) schedule.slots[base].first_step = at, seen[base] = true;
    schedule.slots[base].last_step = std::max(schedule.slots[base].last_step, at);
  };
  const auto end = static_cast<uint32_t>(schedule.steps.size()) + 1;
  for (const int32_t slot : schedule.inputs) touch(slot, 0);
  for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const auto& step = schedule.steps[i];
    for (const int32_t s : step.inputs) touch(s, i + 1);
    for (const int32_t s : step.onto) touch(s, i + 1);
    for (const int32_t s : step.outputs) touch(s, i + 1);
    touch(step.workspace, i + 1);
  }
  each_kept(schedule, [&](int32_t slot, uint32_t step) { touch(slot, step + 1); });
  // Inputs live to the end: a schedule may be executed again with the same ones.
  for (const int32_t slot : schedule.inputs) touch(slot, end);
  for (const int32_t slot : schedule.outputs) touch(slot, end);
}

}  // namespace weft::link

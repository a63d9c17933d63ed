#include "link/conflicts.h"

namespace weft::link {

Accesses::Accesses(const ExecutionPlan& plan) : plan_(plan) {
  using Kind = BufferAllocation::Kind;
  std::map<std::tuple<uint32_t, Kind, int32_t>, uint32_t> known;
  for (const auto& slot : plan.slots) {
    const int32_t index = slot.kind == Kind::arena ? -1 : slot.index;
    const uint32_t next = static_cast<uint32_t>(known.size());
    memory_.push_back(known.emplace(std::tuple(slot.device, slot.kind, index), next).first->second);
  }
}

void Accesses::add(int32_t slot, bool writes) {
  if (slot < 0) return;
  const auto& s = plan_.slots[static_cast<size_t>(slot)];
  found_.push_back({memory_[static_cast<size_t>(slot)], s.offset, s.offset + s.type.bytes(), writes, slot});
}

const std::vector<Access>& Accesses::of(const Step& step) {
  found_.clear();
  for (const int32_t s : step.inputs) add(s, false);
  for (const int32_t s : step.outputs) add(s, true);
  add(step.workspace, true);
  return found_;
}

}  // namespace weft::link

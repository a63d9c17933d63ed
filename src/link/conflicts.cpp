#include "link/conflicts.h"

namespace weft::link {

Accesses::Accesses(const Schedule& schedule, Conflicts what) : schedule_(schedule), what_(what) {
  using Kind = BufferAllocation::Kind;
  std::map<std::tuple<uint32_t, Kind, int32_t>, uint32_t> known;
  for (size_t i = 0; i < schedule.slots.size(); ++i) {
    const auto& slot = schedule.slots[i];
    int32_t index = slot.index;
    if (slot.kind == Kind::arena)
      index = what == Conflicts::bytes ? -1 : slot.same_as < 0 ? static_cast<int32_t>(i) : slot.same_as;
    const uint32_t next = static_cast<uint32_t>(known.size());
    memory_.push_back(known.emplace(std::tuple(slot.device, slot.kind, index), next).first->second);
  }
}

void Accesses::add(int32_t slot, bool writes) {
  if (slot < 0) return;
  const auto& s = schedule_.slots[static_cast<size_t>(slot)];
  const uint64_t begin = what_ == Conflicts::bytes ? s.offset : s.within;
  found_.push_back({memory_[static_cast<size_t>(slot)], begin, begin + s.type.bytes(), writes, slot});
}

const std::vector<Access>& Accesses::of(const Step& step) {
  found_.clear();
  for (const int32_t s : step.inputs) add(s, false);
  for (const int32_t s : step.onto) add(s, false);
  for (const int32_t s : step.outputs) add(s, true);
  add(step.workspace, true);
  return found_;
}

}  // namespace weft::link

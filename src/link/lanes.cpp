#include "link/lanes.h"

#include <algorithm>

namespace weft::link {
namespace {

// A value of so many bytes takes memory that is free in the order of steps: what makes it then waits for
// steps of other lanes, which is short against the time that it takes. Else the scores of one part of the
// rows would not lie where those of the part before were.
constexpr uint64_t kLarge = uint64_t{256} << 20;

void join(Clock& clock, const Clock& other) {
  for (uint32_t l = 0; l < kMostLanes; ++l) clock[l] = std::max(clock[l], other[l]);
}

// Can it be recorded, and run concurrently with other steps?
bool runs_beside_others(const Schedule& schedule, const Step& step) {
  if (!schedule.devices[step.device]->backend().make_sequence) return false;
  return !step.prepared || step.prepared->kernel.flags & WEFT_KERNEL_RECORDABLE;
}

bool is_on_one_device(const Schedule& schedule) {
  return std::ranges::all_of(schedule.steps,
                             [&](const Step& s) { return s.device == schedule.steps.front().device; });
}

}  // namespace

Lanes::Lanes(Schedule& schedule) {
  const bool any_beside = is_on_one_device(schedule);
  Clock floor{};  // what a step that no sequence holds has waited for
  for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
    Step& step = schedule.steps[i];
    const bool alone = !any_beside || !runs_beside_others(schedule, step);
    Clock before = floor;
    if (alone) join(before, ends_);
    for (const uint32_t earlier : step.after) {
      join(before, before_[earlier]);
      before[lane_[earlier]] = std::max(before[lane_[earlier]], earlier + 1);
    }
    step.lane = choose(schedule, i, before);
    before[step.lane] = std::max(before[step.lane], ends_[step.lane]);
    if (ends_[step.lane]) join(before, before_[ends_[step.lane] - 1]);
    before_.push_back(before);
    lane_.push_back(step.lane);
    ends_[step.lane] = i + 1;
    if (alone) floor = ends_;
  }
}

// The lane of a predecessor that is its lane's last step; a lane all of whose steps it follows; a new one; or
// the least recently used one.
uint32_t Lanes::choose(const Schedule& schedule, uint32_t i, const Clock& before) {
  const auto& after = schedule.steps[i].after;
  for (auto at = after.rbegin(); at != after.rend(); ++at)
    if (ends_[lane_[*at]] == *at + 1) return lane_[*at];
  for (uint32_t l = 0; l < count_; ++l)
    if (ends_[l] <= before[l]) return l;
  if (count_ < kMostLanes) return count_++;
  return static_cast<uint32_t>(std::ranges::min_element(ends_) - ends_.begin());
}

std::vector<Lifetime> Lanes::lifetimes(const Schedule& schedule) const {
  std::vector<Lifetime> all(schedule.slots.size());
  for (auto& life : all) life.begin.fill(UINT32_MAX);
  const auto touch = [&](int32_t slot, uint32_t i) {
    if (slot < 0) return;
    const int32_t same = schedule.slots[static_cast<size_t>(slot)].same_as;
    Lifetime& life = all[static_cast<size_t>(same < 0 ? slot : same)];
    uint32_t& end = life.end[lane_[i]];
    if (end == 0)  // later ones of this lane come after this one
      for (uint32_t l = 0; l < kMostLanes; ++l) life.begin[l] = std::min(life.begin[l], before_[i][l]);
    end = std::max(end, i + 1);
  };
  for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    for (const auto* list : {&step.inputs, &step.outputs, &step.onto})
      for (const int32_t s : *list) touch(s, i);
    touch(step.workspace, i);
  }
  each_kept(schedule, touch);
  for (size_t s = 0; s < all.size(); ++s) {
    const BufferAllocation& slot = schedule.slots[s];  // whose steps count from 1
    if (slot.type.bytes() > kLarge && slot.first_step > 0)
      for (uint32_t& begin : all[s].begin) begin = std::max(begin, slot.first_step - 1);
  }
  return all;
}

}  // namespace weft::link

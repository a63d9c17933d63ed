#include <algorithm>

#include "link/conflicts.h"

namespace weft::link {
namespace {

// Without those that another of them follows itself. Looks one step back, which leaves few that could go.
void drop_implied(std::vector<uint32_t>& after, const std::vector<Step>& steps) {
  const std::vector<uint32_t> all = after;
  std::erase_if(after, [&](uint32_t earlier) {
    return std::ranges::any_of(
        all, [&](uint32_t other) { return std::ranges::binary_search(steps[other].after, earlier); });
  });
}

// A step goes on in the lane of one that it follows, the latest that no other step has followed there.
void choose_lane(uint32_t i, std::vector<Step>& steps, std::vector<uint32_t>& last_of_lane) {
  Step& step = steps[i];
  for (auto at = step.after.rbegin(); at != step.after.rend(); ++at)
    if (last_of_lane[steps[*at].lane] == *at) {
      step.lane = steps[*at].lane;
      last_of_lane[step.lane] = i;
      return;
    }
  step.lane = static_cast<uint32_t>(last_of_lane.size());
  last_of_lane.push_back(i);
}

}  // namespace

void set_dependencies(ExecutionPlan& plan) {
  Accesses accesses(plan);
  Histories histories;
  std::vector<uint32_t> last_of_lane;
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    auto& after = plan.steps[i].after;
    after.clear();
    for (const Access& a : accesses.of(plan.steps[i]))
      histories[a.memory].touch(a, i, [&](uint32_t earlier, uint64_t) { after.push_back(earlier); });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    drop_implied(after, plan.steps);
    choose_lane(i, plan.steps, last_of_lane);
  }
}

}  // namespace weft::link

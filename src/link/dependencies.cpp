#include <algorithm>

#include "link/conflicts.h"

namespace weft::link {

// Drops dependencies that another one implies. Looks one step back, which leaves few redundant ones.
static void drop_implied(std::vector<uint32_t>& after, const std::vector<Step>& steps) {
  const std::vector<uint32_t> all = after;
  std::erase_if(after, [&](uint32_t earlier) {
    return std::ranges::any_of(
        all, [&](uint32_t other) { return std::ranges::binary_search(steps[other].after, earlier); });
  });
}

void set_dependencies(Schedule& schedule, Conflicts what) {
  Accesses accesses(schedule, what);
  Histories histories;
  for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
    auto& after = schedule.steps[i].after;
    after.clear();
    for (const Access& a : accesses.of(schedule.steps[i]))
      histories[a.memory].touch(a, i, [&](uint32_t earlier, uint64_t, int32_t) { after.push_back(earlier); });
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    drop_implied(after, schedule.steps);
  }
}

}  // namespace weft::link

#pragma once
#include "link/schedule.h"

namespace weft::link {

/// The partial order of a schedule's steps: dependencies, and the order within a lane. Lanes, at most
/// kMostLanes, are assigned here from the dependencies between values, before memory is planned. A step that
/// cannot be recorded is ordered with respect to all other steps; so are all steps of a schedule on several
/// devices.
class Lanes {
 public:
  /// Sets each step's lane.
  explicit Lanes(Schedule& schedule);

  uint32_t count() const { return count_; }
  bool comes_before(uint32_t earlier, uint32_t later) const {
    return earlier < before_[later][lane_[earlier]];
  }
  /// One for each slot; a slot in another one's bytes counts as part of that one.
  std::vector<Lifetime> lifetimes(const Schedule& schedule) const;

 private:
  uint32_t choose(const Schedule& schedule, uint32_t step, const Clock& before);

  uint32_t count_ = 0;
  Clock ends_{};               // by lane: number of its steps
  std::vector<Clock> before_;  // by step: the steps before it
  std::vector<uint32_t> lane_;
};

}  // namespace weft::link

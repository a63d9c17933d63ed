#pragma once
#include "link/schedule.h"

namespace weft::link {

/// Which steps of a schedule come after which: by their dependencies, and as steps of a lane follow each
/// other. Lanes are chosen here, at most kMostLanes, from the dependencies between values, before memory is
/// planned. A step that no sequence can hold comes after all that is before it and before all that is behind
/// it; so do all steps of a schedule on several devices.
class Lanes {
 public:
  /// Sets each step's lane.
  explicit Lanes(Schedule& schedule);

  uint32_t count() const { return count_; }
  bool comes_before(uint32_t earlier, uint32_t later) const {
    return earlier < before_[later][lane_[earlier]];
  }
  /// One for each slot. That of a slot in another's bytes is part of the other's.
  std::vector<Lifetime> lifetimes(const Schedule& schedule) const;

 private:
  uint32_t choose(const Schedule& schedule, uint32_t step, const Clock& before);

  uint32_t count_ = 0;
  Clock ends_{};               // by lane: one behind its last step
  std::vector<Clock> before_;  // by step: what comes before it
  std::vector<uint32_t> lane_;
};

}  // namespace weft::link

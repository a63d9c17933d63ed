#include "runtime/staging.h"

#include <algorithm>

namespace weft::runtime {
namespace {

constexpr uint64_t kMost = 8 << 20;   // of one weight: a larger one does not stay in the caches
constexpr uint64_t kLeast = 8 << 20;  // of all: less is packed in a few milliseconds

// Indices of Schedule::packed that a step reads.
std::vector<size_t> packed_of(const link::Schedule& schedule, const link::Step& step) {
  std::vector<size_t> found;
  for (const int32_t s : step.inputs)
    if (const int32_t p = s < 0 ? -1 : schedule.slots[static_cast<size_t>(s)].packed; p >= 0)
      found.push_back(static_cast<size_t>(p));
  return found;
}

}  // namespace

std::vector<bool> stageable(const link::Schedule& schedule) {
  std::vector<int> readers(schedule.packed.size());
  for (const auto& step : schedule.steps) {
    const auto read = packed_of(schedule, step);
    for (const size_t p : read) readers[p] += read.size() == 1 ? 1 : 2;
  }
  std::vector<bool> may;
  uint64_t all = 0;
  for (size_t p = 0; p < readers.size(); ++p) {
    const auto& want = schedule.packed[p];
    const seam::Device& device = *schedule.devices[want.device];
    may.push_back(readers[p] == 1 && want.device == 0 && device.host_memory() && !device.ordered() &&
                  want.packing().bytes <= kMost);
    if (may[p]) all += want.packing().bytes;
  }
  if (all < kLeast) may.assign(may.size(), false);
  return may;
}

Staging::Staging(const link::Schedule& schedule, std::span<const int32_t> staged, Pack pack)
    : schedule_(schedule), pack_(std::move(pack)), wanted_(schedule.steps.size(), -1) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    for (const int32_t s : schedule.steps[i].inputs) {
      if (std::ranges::find(staged, s) == staged.end() || s < 0) continue;
      wanted_[i] = schedule.slots[static_cast<size_t>(s)].packed;
      bytes_ = std::max(bytes_, schedule.packed[static_cast<size_t>(wanted_[i])].packing().bytes);
    }
}

Status Staging::open() {
  WEFT_TRY(memory_, schedule_.devices[0]->allocate_unpooled(bytes_));
  return {};
}

Status Staging::before(size_t step) {
  const int32_t want = wanted_[step];
  if (want < 0 || want == holds_) return {};
  holds_ = -1;  // unless it is packed as a whole
  WEFT_CHECK(pack_(schedule_.packed[static_cast<size_t>(want)], *memory_.get()));
  holds_ = want;
  return {};
}

}  // namespace weft::runtime

#include <algorithm>
#include <numeric>

#include "link/execution_plan.h"

namespace weft::link {
namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

bool together(const BufferAllocation& a, const BufferAllocation& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// The lowest offset at which `slot` meets no placed slot that lives at the same time.
uint64_t first_fit(const BufferAllocation& slot, const std::vector<const BufferAllocation*>& placed,
                   uint64_t alignment) {
  std::vector<std::pair<uint64_t, uint64_t>> busy;
  for (const auto* other : placed)
    if (together(slot, *other)) busy.emplace_back(other->offset, other->offset + other->type.bytes());
  std::sort(busy.begin(), busy.end());
  uint64_t at = 0;
  for (const auto& [from, to] : busy) {
    if (at + slot.type.bytes() <= from) break;
    at = std::max(at, round_up(to, alignment));
  }
  return at;
}

uint64_t live_peak(const std::vector<const BufferAllocation*>& slots) {
  std::vector<std::pair<uint32_t, int64_t>> events;
  for (const auto* s : slots) {
    events.emplace_back(s->first_step, static_cast<int64_t>(s->type.bytes()));
    events.emplace_back(s->last_step + 1, -static_cast<int64_t>(s->type.bytes()));
  }
  std::sort(events.begin(), events.end());
  int64_t now = 0, peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    now += events[i].second;
    if (i + 1 == events.size() || events[i + 1].first != events[i].first) peak = std::max(peak, now);
  }
  return static_cast<uint64_t>(peak);
}

}  // namespace

std::vector<ArenaSize> plan_memory(std::vector<BufferAllocation>& slots,
                                   std::span<seam::Device* const> devices) {
  std::vector<ArenaSize> sizes(devices.size());
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Large ones first: small ones then fill the holes.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return slots[a].type.bytes() > slots[b].type.bytes(); });
  for (size_t d = 0; d < devices.size(); ++d) {
    // 64 keeps vector loads whole; the device may want more.
    const uint64_t alignment = std::max<uint64_t>(64, devices[d]->capability().offset_alignment);
    std::vector<const BufferAllocation*> placed;
    for (const size_t i : order) {
      auto& slot = slots[i];
      if (slot.kind != BufferAllocation::Kind::arena || slot.device != d || slot.same_as >= 0) continue;
      slot.offset = first_fit(slot, placed, alignment);
      placed.push_back(&slot);
      sizes[d].bytes = std::max(sizes[d].bytes, round_up(slot.offset + slot.type.bytes(), alignment));
    }
    sizes[d].live_peak = live_peak(placed);
  }
  for (auto& slot : slots)
    if (slot.same_as >= 0) slot.offset = slots[static_cast<size_t>(slot.same_as)].offset;
  return sizes;
}

}  // namespace weft::link

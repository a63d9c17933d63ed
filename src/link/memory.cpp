#include <algorithm>
#include <map>
#include <set>

#include "link/execution_plan.h"

namespace weft::link {
namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// An arena slot while its offset is looked for.
struct Room {
  uint64_t bytes = 0, offset = 0;  // bytes are a multiple of the alignment
  uint32_t first = 0, last = 0;    // steps
  BufferAllocation* slot = nullptr;
  uint64_t end() const { return offset + bytes; }
};
using Rooms = std::vector<Room>;

bool together(const Room& a, const Room& b) { return a.first <= b.last && b.first <= a.last; }

uint64_t extent(const Rooms& rooms) {
  uint64_t bytes = 0;
  for (const Room& r : rooms) bytes = std::max(bytes, r.end());
  return bytes;
}

// The lowest offset at which each meets none that was placed before and lives at the same time; large ones
// first, so that small ones fill the holes. Comes close to the live peak, in quadratic time.
void place_by_size(Rooms& rooms) {
  std::stable_sort(rooms.begin(), rooms.end(),
                   [](const Room& a, const Room& b) { return a.bytes > b.bytes; });
  Rooms placed;  // by offset
  placed.reserve(rooms.size());
  for (Room& r : rooms) {
    for (const Room& other : placed) {
      if (!together(r, other)) continue;
      if (r.end() <= other.offset) break;
      r.offset = std::max(r.offset, other.end());
    }
    const auto at = std::ranges::upper_bound(placed, r.offset, {}, &Room::offset);
    placed.insert(at, r);
  }
}

// Blocks of an arena that are free at one time: by offset, to be joined with their neighbours, and by size.
class FreeBlocks {
 public:
  uint64_t take(uint64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) return grow(bytes);
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  void give(uint64_t offset, uint64_t bytes) {
    if (!bytes) return;
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.end() && after->first == offset + bytes) {
      const auto [o, n] = *after;
      remove(o, n), bytes += n;
      after = by_offset_.lower_bound(offset);
    }
    if (after != by_offset_.begin()) {
      const auto [o, n] = *std::prev(after);
      if (o + n == offset) remove(o, n), offset = o, bytes += n;
    }
    add(offset, bytes);
  }

 private:
  // The last block may reach to the end: then only what it lacks is new.
  uint64_t grow(uint64_t bytes) {
    uint64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [o, n] = *by_offset_.rbegin();
      if (o + n == end_) remove(o, n), offset = o;
    }
    end_ = offset + bytes;
    return offset;
  }
  void add(uint64_t offset, uint64_t bytes) {
    by_offset_.emplace(offset, bytes), by_size_.emplace(bytes, offset);
  }
  void remove(uint64_t offset, uint64_t bytes) { by_offset_.erase(offset), by_size_.erase({bytes, offset}); }

  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

// In the order of steps, the smallest free block that is large enough. For programs of many calls.
void place_by_step(Rooms& rooms) {
  std::stable_sort(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) {
    return a.first != b.first ? a.first < b.first : a.bytes > b.bytes;
  });
  std::multimap<uint32_t, const Room*> ends;
  FreeBlocks free;
  for (Room& r : rooms) {
    for (auto at = ends.begin(); at != ends.end() && at->first < r.first; at = ends.erase(at))
      free.give(at->second->offset, at->second->bytes);
    r.offset = free.take(r.bytes);
    ends.emplace(r.last, &r);
  }
}

uint64_t live_peak(const Rooms& rooms) {
  std::vector<std::pair<uint32_t, int64_t>> events;
  for (const Room& r : rooms) {
    const auto bytes = static_cast<int64_t>(r.slot->type.bytes());
    events.emplace_back(r.first, bytes);
    events.emplace_back(r.last + 1, -bytes);
  }
  std::sort(events.begin(), events.end());
  int64_t now = 0, peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    now += events[i].second;
    if (i + 1 == events.size() || events[i + 1].first != events[i].first) peak = std::max(peak, now);
  }
  return static_cast<uint64_t>(peak);
}

Rooms rooms_of(std::vector<BufferAllocation>& slots, uint32_t device, uint64_t alignment) {
  Rooms rooms;
  for (auto& slot : slots)
    if (slot.kind == BufferAllocation::Kind::arena && slot.device == device && slot.same_as < 0)
      rooms.push_back({.bytes = round_up(slot.type.bytes(), alignment),
                       .first = slot.first_step,
                       .last = slot.last_step,
                       .slot = &slot});
  return rooms;
}

}  // namespace

std::vector<ArenaSize> plan_memory(std::vector<BufferAllocation>& slots,
                                   std::span<seam::Device* const> devices) {
  std::vector<ArenaSize> sizes;
  for (uint32_t d = 0; d < devices.size(); ++d) {
    // 64 keeps vector loads whole; the device may want more.
    const uint64_t alignment = std::max<uint64_t>(64, devices[d]->capability().offset_alignment);
    Rooms rooms = rooms_of(slots, d, alignment);
    rooms.size() <= kMostBySize ? place_by_size(rooms) : place_by_step(rooms);
    for (const Room& r : rooms) r.slot->offset = r.offset;
    sizes.push_back({extent(rooms), live_peak(rooms)});
  }
  for (auto& slot : slots)
    if (slot.same_as >= 0) slot.offset = slots[static_cast<size_t>(slot.same_as)].offset;
  return sizes;
}

}  // namespace weft::link

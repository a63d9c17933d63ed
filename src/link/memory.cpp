#include <algorithm>
#include <map>
#include <set>

#include "link/schedule.h"

namespace weft::link {
namespace {

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// An arena slot during placement.
struct Room {
  uint64_t bytes = 0, offset = 0;  // bytes are a multiple of the alignment
  Lifetime life;
  BufferAllocation* slot = nullptr;
  uint64_t end() const { return offset + bytes; }
};
using Rooms = std::vector<Room>;

bool together(const Room& a, const Room& b) {
  return !a.life.begins_after(b.life) && !b.life.begins_after(a.life);
}

uint64_t extent(const Rooms& rooms) {
  uint64_t bytes = 0;
  for (const Room& r : rooms) bytes = std::max(bytes, r.end());
  return bytes;
}

// First fit by decreasing size: each slot gets the lowest offset that overlaps no live slot placed before.
// Comes close to the live peak, in quadratic time.
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

// The free blocks of an arena: by offset, for merging with neighbours, and by size. A slot may take a block
// if it begins after all slots that lay there.
class FreeBlocks {
 public:
  uint64_t take(uint64_t bytes, const Lifetime& life) {
    constexpr int kMostLooks = 32;  // of those that are large enough, the smallest
    auto fit = by_size_.lower_bound({bytes, 0});
    for (int looks = 0; fit != by_size_.end(); ++fit) {
      const auto [size, offset] = *fit;
      const Lifetime before = by_offset_.at(offset).before;
      if (life.begins_after(before)) {
        remove(offset);
        if (size > bytes) add(offset + bytes, {size - bytes, before});
        return offset;
      }
      if (++looks == kMostLooks) break;
    }
    return grow(bytes, life);
  }
  void give(uint64_t offset, uint64_t bytes, const Lifetime& life) {
    if (!bytes) return;
    Block block{bytes, life};
    if (const auto next = by_offset_.find(offset + bytes); next != by_offset_.end()) join(block, next->first);
    if (const auto at = by_offset_.lower_bound(offset); at != by_offset_.begin()) {
      const auto [o, before] = *std::prev(at);
      if (o + before.bytes == offset) join(block, o), offset = o;
    }
    add(offset, block);
  }

 private:
  struct Block {
    uint64_t bytes = 0;
    Lifetime before;  // of all that lay there
  };
  // If the last free block reaches the end, the arena grows by the missing bytes only.
  uint64_t grow(uint64_t bytes, const Lifetime& life) {
    uint64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto& [o, last] = *by_offset_.rbegin();
      if (o + last.bytes == end_ && last.bytes < bytes && life.begins_after(last.before))
        offset = o, remove(o);
    }
    end_ = offset + bytes;
    return offset;
  }
  void join(Block& block, uint64_t neighbour) {
    const Block& other = by_offset_.at(neighbour);
    block.bytes += other.bytes;
    for (uint32_t l = 0; l < kMostLanes; ++l)
      block.before.end[l] = std::max(block.before.end[l], other.before.end[l]);
    remove(neighbour);
  }
  void add(uint64_t offset, const Block& block) {
    by_offset_.emplace(offset, block), by_size_.emplace(block.bytes, offset);
  }
  void remove(uint64_t offset) {
    const auto at = by_offset_.find(offset);
    by_size_.erase({at->second.bytes, offset}), by_offset_.erase(at);
  }

  std::map<uint64_t, Block> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t end_ = 0;
};

// Best fit in the order of steps, for programs of many calls.
void place_by_step(Rooms& rooms) {
  std::stable_sort(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) {
    return a.slot->first_step != b.slot->first_step ? a.slot->first_step < b.slot->first_step
                                                    : a.bytes > b.bytes;
  });
  std::multimap<uint32_t, const Room*> ends;
  FreeBlocks free;
  for (Room& r : rooms) {
    for (auto at = ends.begin(); at != ends.end() && at->first < r.slot->first_step; at = ends.erase(at))
      free.give(at->second->offset, at->second->bytes, at->second->life);
    r.offset = free.take(r.bytes, r.life);
    ends.emplace(r.slot->last_step, &r);
  }
}

uint64_t live_peak(const Rooms& rooms) {
  std::vector<std::pair<uint32_t, int64_t>> events;
  for (const Room& r : rooms) {
    const auto bytes = static_cast<int64_t>(r.slot->type.bytes());
    events.emplace_back(r.slot->first_step, bytes);
    events.emplace_back(r.slot->last_step + 1, -bytes);
  }
  std::sort(events.begin(), events.end());
  int64_t now = 0, peak = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    now += events[i].second;
    if (i + 1 == events.size() || events[i + 1].first != events[i].first) peak = std::max(peak, now);
  }
  return static_cast<uint64_t>(peak);
}

// By default a slot begins after another if its first step comes after the other's last.
Lifetime in_turn(const BufferAllocation& slot) { return {{slot.first_step}, {slot.last_step + 1}}; }

Rooms rooms_of(std::vector<BufferAllocation>& slots, uint32_t device, uint64_t alignment,
               std::span<const Lifetime> lifetimes) {
  Rooms rooms;
  for (size_t i = 0; i < slots.size(); ++i) {
    auto& slot = slots[i];
    if (slot.kind == BufferAllocation::Kind::arena && slot.device == device && slot.same_as < 0)
      rooms.push_back({.bytes = round_up(slot.type.bytes(), alignment),
                       .life = lifetimes.empty() ? in_turn(slot) : lifetimes[i],
                       .slot = &slot});
  }
  return rooms;
}

}  // namespace

// 64 bytes keep vector loads aligned; the device may want more.
uint64_t alignment_of(const seam::Device& device) {
  return std::max<uint64_t>(64, device.capability().offset_alignment);
}

std::vector<ArenaSize> plan_memory(std::vector<BufferAllocation>& slots,
                                   std::span<seam::Device* const> devices,
                                   std::span<const Lifetime> lifetimes) {
  std::vector<ArenaSize> sizes;
  for (uint32_t d = 0; d < devices.size(); ++d) {
    Rooms rooms = rooms_of(slots, d, alignment_of(*devices[d]), lifetimes);
    rooms.size() <= kMostBySize ? place_by_size(rooms) : place_by_step(rooms);
    for (const Room& r : rooms) r.slot->offset = r.offset;
    sizes.push_back({extent(rooms), live_peak(rooms)});
  }
  for (auto& slot : slots)
    if (slot.same_as >= 0) slot.offset = slots[static_cast<size_t>(slot.same_as)].offset + slot.within;
  return sizes;
}

}  // namespace weft::link

#pragma once
#include <map>

#include "link/schedule.h"

namespace weft::link {

/// Bytes that a step touches. Equal `memory` is one piece of memory: an arena, or what a state, a weight or a
/// port is on a device.
struct Access {
  uint32_t memory = 0;
  uint64_t begin = 0, end = 0;
  bool writes = false;
  int32_t slot = -1;
};

/// What the steps of a schedule touch.
class Accesses {
 public:
  /// By values, what has a place of its own in the arena is a piece of memory for itself.
  explicit Accesses(const Schedule& schedule, Conflicts what = Conflicts::bytes);
  /// Of one step, what it reads first. Valid until the next call.
  const std::vector<Access>& of(const Step& step);

 private:
  void add(int32_t slot, bool writes);
  const Schedule& schedule_;
  Conflicts what_;
  std::vector<uint32_t> memory_;  // by slot
  std::vector<Access> found_;
};

/// Who touched each byte of one piece of memory last, while the steps go by in their order.
class History {
 public:
  /// Calls conflict(earlier, n, slot) for each step that `step` must follow because of n of these bytes: the
  /// last that wrote them, as this slot, and, if it writes, those that have read them since (-1). All other
  /// conflicts follow from such ones.
  template <class Conflict>
  void touch(const Access& a, uint32_t step, Conflict&& conflict) {
    if (a.begin >= a.end) return;
    cut(a.begin), cut(a.end);
    auto at = parts_.lower_bound(a.begin);
    uint64_t seen = a.begin;
    for (; at != parts_.end() && at->first < a.end; at = a.writes ? parts_.erase(at) : std::next(at)) {
      if (!a.writes && at->first > seen) parts_.emplace(seen, Part{at->first, kNone, -1, {step}});
      seen = at->second.end;
      visit(at->second, at->second.end - at->first, a.writes, step, conflict);
    }
    if (a.writes)
      parts_.emplace(a.begin, Part{a.end, step, a.slot, {}});
    else if (seen < a.end)
      parts_.emplace(seen, Part{a.end, kNone, -1, {step}});
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Part {
    uint64_t end = 0;
    uint32_t writer = kNone;
    int32_t slot = -1;              // as which it was written
    std::vector<uint32_t> readers;  // since it was written
  };
  template <class Conflict>
  static void visit(Part& part, uint64_t bytes, bool writes, uint32_t step, Conflict&& conflict) {
    if (part.writer != kNone && part.writer != step) conflict(part.writer, bytes, part.slot);
    if (!writes) {
      if (part.readers.empty() || part.readers.back() != step) part.readers.push_back(step);
      return;
    }
    for (const uint32_t reader : part.readers)
      if (reader != step) conflict(reader, bytes, -1);
  }
  // No part reaches over this byte's beginning.
  void cut(uint64_t at) {
    auto part = parts_.upper_bound(at);
    if (part == parts_.begin()) return;
    --part;
    if (part->first == at || part->second.end <= at) return;
    Part behind = part->second;
    part->second.end = at;
    parts_.emplace(at, std::move(behind));
  }
  std::map<uint64_t, Part> parts_;  // by their first byte
};

using Histories = std::map<uint32_t, History>;  // by memory

}  // namespace weft::link

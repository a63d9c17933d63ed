#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weft/backend.hpp"

// What waits in a queue for more work of its kind (collect.hpp), which may come after work of other kinds.
namespace weft::cuda {

using backend::Outcome;

struct Queue;

/// Numbers of a queue in which blocks leave their sums for the kernel after them.
inline constexpr int kPartials = 65536;
/// Behind them, counters of blocks that are ready: 0 between kernels.
inline constexpr int kCounters = 1024, kQueueMemory = kPartials + kCounters;

/// Bytes of memory.
struct Range {
  const char *begin, *end;
  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};
template <class T>
Range range_of(const T* at, int64_t n) {
  return {reinterpret_cast<const char*>(at), reinterpret_cast<const char*>(at + n)};
}

inline Range range_of(backend::TensorView t) { return {t.data(), t.data() + t.bytes()}; }

/// Bytes of many ranges, as ranges that don't touch, in order.
class Bytes {
 public:
  void add(Range r) {
    if (r.begin == r.end) return;
    const auto first = std::ranges::lower_bound(all_, r.begin, {}, &Range::end);
    auto last = first;
    for (; last != all_.end() && last->begin <= r.end; ++last)
      r = {std::min(r.begin, last->begin), std::max(r.end, last->end)};
    if (first == last)
      all_.insert(first, r);
    else
      *first = r, all_.erase(first + 1, last);
  }
  bool meet(std::span<const Range> others) const {
    return std::ranges::any_of(others, [&](const Range& r) {
      const auto at = std::ranges::upper_bound(all_, r.begin, {}, &Range::end);
      return at != all_.end() && at->meets(r);
    });
  }

 private:
  std::vector<Range> all_;
};

/// Pieces of one kind that wait.
class Collected {
 public:
  virtual ~Collected() = default;
  virtual Outcome start(Queue&) = 0;

  bool depends(std::span<const Range> reads, std::span<const Range> writes) const {
    return writes_.meet(reads) || writes_.meet(writes) || reads_.meet(writes);
  }
  void uses(std::span<const Range> reads, std::span<const Range> writes) {
    for (const Range& r : reads) reads_.add(r);
    for (const Range& w : writes) writes_.add(w);
  }

 private:
  Bytes reads_, writes_;
};

/// All that waits in a queue, in the order in which it will be launched.
class Collections {
 public:
  /// Where so many wait, they are launched before another one begins.
  static constexpr size_t kMost = 16;

  bool empty() const { return all_.empty(); }
  bool full() const { return all_.size() == kMost; }
  Collected* last() const { return all_.empty() ? nullptr : all_.back().get(); }

  /// The last C that says that it `takes` work which reads and writes this, if the work may be launched with
  /// it: nothing that is launched later must come before the work.
  template <class C, class F>
  C* find(std::span<const Range> reads, std::span<const Range> writes, F takes) const {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      if (auto* const of_kind = dynamic_cast<C*>(at->get()); of_kind && takes(*of_kind)) return of_kind;
      if ((*at)->depends(reads, writes)) return nullptr;
    }
    return nullptr;
  }
  template <class C>
  C& add(std::unique_ptr<C> fresh) {
    C& at = *fresh;
    all_.push_back(std::move(fresh));
    return at;
  }
  void drop_last() { all_.pop_back(); }
  std::vector<std::unique_ptr<Collected>> take() { return std::exchange(all_, {}); }

 private:
  std::vector<std::unique_ptr<Collected>> all_;
};

}  // namespace weft::cuda

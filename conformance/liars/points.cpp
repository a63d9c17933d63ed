#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "conformance/liars/liar.h"

// Points reached too early, waits that do not wait, and copies of pinned memory out of order.
namespace weft::conformance {
namespace {

// Reports some points as reached as soon as they are queried.
class ReachesTooEarly : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code await(weft_queue q, uint64_t point, uint64_t ns, uint64_t* reached, weft_error* e) override {
    const weft_code code = DrawnLate::await(q, point, ++asked_ % every_ ? ns : 0, reached, e);
    if (asked_ % every_ == 0 && *reached < point) *reached = point;
    return code;
  }

 private:
  const uint64_t every_ = between(random_, 1, 3);
  uint64_t asked_ = 0;
};

// A query of the progress returns the last mark.
class PollsTheLastMark : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code mark(weft_queue q, uint64_t* point, weft_error* e) override {
    const weft_code code = DrawnLate::mark(q, point, e);
    marked_[q] = *point;
    return code;
  }
  weft_code await(weft_queue q, uint64_t point, uint64_t ns, uint64_t* reached, weft_error* e) override {
    if (ns >= limit_) return DrawnLate::await(q, point, ns, reached, e);
    *reached = marked_[q];
    return WEFT_OK;
  }

 private:
  const uint64_t limit_ = between(random_, 1, 80'000);
  std::map<weft_queue, uint64_t> marked_;
};

// A point does not cover the last launches before it.
class MarksTooSoon : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    uint64_t before = 0;
    if (const weft_code code = DrawnLate::mark(l->queue, &before, e); code != WEFT_OK) return code;
    auto& places = places_[l->queue];
    places.push_back(before);
    if (places.size() > less_) places.pop_front();
    return DrawnLate::launch(l, e);
  }
  weft_code mark(weft_queue q, uint64_t* point, weft_error* e) override {
    const weft_code code = DrawnLate::mark(q, point, e);
    const auto& places = places_[q];
    if (!places.empty() && places.front() > last_[q]) *point = places.front();  // points increase
    last_[q] = *point;
    return code;
  }
  void close_queue(weft_queue q) override {
    last_.erase(q), places_.erase(q);
    DrawnLate::close_queue(q);
  }

 private:
  const uint64_t less_ = between(random_, 1, 4);
  std::map<weft_queue, uint64_t> last_;
  std::map<weft_queue, std::deque<uint64_t>> places_;  // before the last launches
};

// Skips some waits.
class ForgetsWaits : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* e) override {
    return ++waits_ % every_ ? DrawnLate::wait(q, other, point, e) : weft_code{WEFT_OK};
  }

 private:
  const uint64_t every_ = between(random_, 1, 5);
  uint64_t waits_ = 0;
};

// Waits for a mark before the one that is requested.
class WaitsForAnOlderPoint : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code mark(weft_queue q, uint64_t* point, weft_error* e) override {
    const weft_code code = DrawnLate::mark(q, point, e);
    marks_[q].push_back(*point);
    return code;
  }
  void close_queue(weft_queue q) override {
    marks_.erase(q);
    DrawnLate::close_queue(q);
  }
  weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* e) override {
    const auto& marks = marks_[other];
    const auto before = static_cast<size_t>(std::ranges::lower_bound(marks, point) - marks.begin());
    return DrawnLate::wait(q, other, before < less_ ? 0 : marks[before - less_], e);
  }

 private:
  const uint64_t less_ = between(random_, 1, 3);
  std::map<weft_queue, std::vector<uint64_t>> marks_;
};

// One timeline for the device: every wait is for the queue that was marked last.
class WaitsForTheLastMark : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code mark(weft_queue q, uint64_t* point, weft_error* e) override {
    const weft_code code = DrawnLate::mark(q, point, e);
    marked_ = q, point_ = *point;
    return code;
  }
  void close_queue(weft_queue q) override {
    if (marked_ == q) marked_ = nullptr;
    DrawnLate::close_queue(q);
  }
  weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* e) override {
    return marked_ && marked_ != q && marked_ != other ? DrawnLate::wait(q, marked_, point_, e)
                                                       : DrawnLate::wait(q, other, point, e);
  }

 private:
  weft_queue marked_ = nullptr;
  uint64_t point_ = 0;
};

// ---- pinned memory

/// Keeps track of pinned memory.
class KnowsPinned : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code allocate_pinned(weft_device d, uint64_t bytes, void** handle, void** address,
                            weft_error* e) override {
    const weft_code code = DrawnLate::allocate_pinned(d, bytes, handle, address, e);
    if (code == WEFT_OK) pinned_[*handle] = static_cast<char*>(*address);
    return code;
  }
  void free(weft_device d, void* handle) override {
    pinned_.erase(handle);
    DrawnLate::free(d, handle);
  }

 protected:
  char* address(void* handle) const {
    const auto at = pinned_.find(handle);
    return at == pinned_.end() ? nullptr : at->second;
  }

 private:
  std::map<void*, char*> pinned_;
};

// Copies through a few staging buffers, which it refills before they are read.
class ReusesItsStaging : public KnowsPinned {
 public:
  using KnowsPinned::KnowsPinned;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = KnowsPinned::open_queue(d, q, e);
    devices_[*q] = d;
    return code;
  }
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    const char* from = address(c->source);
    if (!from || !c->target) return KnowsPinned::copy(q, c, e);
    if (const weft_code code = lag(q, e); code != WEFT_OK) return code;
    weft_copy staged = *c;
    staged.source_offset = 0;
    while (staged.bytes > 0) {
      Stage& stage = next_stage(q, e);
      const uint64_t n = std::min(staged.bytes, kStage);
      std::memcpy(stage.address, from + c->source_offset + (c->bytes - staged.bytes), n);
      weft_copy piece = staged;
      piece.source = stage.handle, piece.bytes = n;
      if (const weft_code code = KnowsPinned::copy(q, &piece, e); code != WEFT_OK) return code;
      staged.target_offset += n, staged.bytes -= n;
    }
    return WEFT_OK;
  }

 private:
  static constexpr uint64_t kStage = 1 << 16;
  struct Stage {
    void* handle = nullptr;
    void* address = nullptr;
  };
  Stage& next_stage(weft_queue q, weft_error* e) {
    auto& stages = stages_[devices_[q]];
    if (stages.empty())
      for (uint64_t i = 0; i < count_; ++i) {
        Stage& s = stages.emplace_back();
        (void)DrawnLate::allocate_pinned(devices_[q], kStage, &s.handle, &s.address, e);
      }
    return stages[next_++ % stages.size()];
  }
  const uint64_t count_ = between(random_, 1, 6);
  uint64_t next_ = 0;
  std::map<weft_queue, weft_device> devices_;
  std::map<weft_device, std::deque<Stage>> stages_;
};

// Reads pinned memory only when the whole queue is synchronized, ignoring points.
class ReadsPinnedLate : public KnowsPinned {
 public:
  using KnowsPinned::KnowsPinned;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    if (!address(c->source) || !c->target || ++copies_ % every_) return KnowsPinned::copy(q, c, e);
    late_[q].push_back(*c);
    return WEFT_OK;
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    for (const auto& c : std::exchange(late_[q], {})) (void)KnowsPinned::copy(q, &c, e);
    return KnowsPinned::synchronize(q, e);
  }
  void free(weft_device d, void* handle) override {
    for (auto& [q, copies] : late_)
      std::erase_if(copies, [&](const weft_copy& c) { return c.source == handle || c.target == handle; });
    KnowsPinned::free(d, handle);
  }

 private:
  const uint64_t every_ = between(random_, 1, 6);
  uint64_t copies_ = 0;
  std::map<weft_queue, std::vector<weft_copy>> late_;
};

// Copies of pinned memory go to a separate queue that waits for no other.
class CopiesBesideTheQueue : public KnowsPinned {
 public:
  using KnowsPinned::KnowsPinned;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = KnowsPinned::open_queue(d, q, e);
    return code == WEFT_OK ? KnowsPinned::open_queue(d, &beside_[*q], e) : code;
  }
  void close_queue(weft_queue q) override {
    KnowsPinned::close_queue(beside_[q]);
    beside_.erase(q);
    KnowsPinned::close_queue(q);
  }
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    if (!address(c->source) && !address(c->target)) return KnowsPinned::copy(q, c, e);
    const weft_code code = KnowsPinned::copy(beside_[q], c, e);
    return code == WEFT_OK ? KnowsPinned::synchronize(beside_[q], e) : code;
  }

 private:
  std::map<weft_queue, weft_queue> beside_;
};

constexpr Liar kPointsLiars[] = {
    {"liar_reaches_too_early", "far", "says that a point is reached before it is",
     "points_are_reached_in_turn", make_liar<ReachesTooEarly>, lacks_points},
    {"liar_polls_the_last_mark", "far", "gives the last mark where it is asked how far a queue is",
     "points_are_reached_in_turn", make_liar<PollsTheLastMark>, lacks_points},
    {"liar_marks_too_soon", "far", "gives a point that is before the last launches",
     "points_are_reached_in_turn", make_liar<MarksTooSoon>, lacks_points},
    {"liar_forgets_waits", "far", "does not wait, now and then", "points_are_reached_in_turn",
     make_liar<ForgetsWaits>, lacks_points},
    {"liar_waits_for_an_older_point", "far", "waits for a mark before the one that is asked for",
     "points_are_reached_in_turn/waited for", make_liar<WaitsForAnOlderPoint>, lacks_points},
    {"liar_waits_for_the_last_mark", "far", "waits for the queue that was marked last",
     "points_are_reached_in_turn", make_liar<WaitsForTheLastMark>, lacks_points},
    {"liar_reuses_its_staging", "far", "fills its staging buffers again before they were read",
     "copies_pinned_memory", make_liar<ReusesItsStaging>, lacks_pinned_memory},
    {"liar_reads_pinned_late", "far", "reads pinned memory behind the point of the copy",
     "copies_pinned_memory", make_liar<ReadsPinnedLate>, lacks_pinned_memory},
    {"liar_copies_beside_the_queue", "far", "copies pinned memory out of the queue's order",
     "copies_pinned_memory", make_liar<CopiesBesideTheQueue>, lacks_pinned_memory},
};

}  // namespace

Liars points_liars() { return kPointsLiars; }

}  // namespace weft::conformance

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "conformance/liars/liar.h"

// Sequences that lose steps, their order, or the bindings of a run.
namespace weft::conformance {
namespace {

/// Steps of a description, for a liar to change.
class ChangedSteps {
 public:
  explicit ChangedSteps(const weft_sequence_desc& d) : desc_(d) {
    for (uint32_t i = 0; i < d.n_steps; ++i) steps_.push_back(*d.steps[i]);
  }
  std::deque<weft_sequence_step>& steps() { return steps_; }
  /// Puts step `from` in the place of step `to`, for which it then waits no more.
  void move(uint32_t from, uint32_t to) {
    const weft_sequence_step moved = steps_[from];
    steps_.erase(steps_.begin() + from);
    steps_.insert(steps_.begin() + to, moved);
    const auto now = [&](uint32_t k) { return k == from ? to : k >= to && k < from ? k + 1 : k; };
    for (uint32_t i = 0; i < steps_.size(); ++i) {
      auto& after = after_.emplace_back();
      for (uint32_t k = 0; k < steps_[i].n_after; ++k)
        if (const uint32_t earlier = now(steps_[i].after[k]); earlier < i) after.push_back(earlier);
      steps_[i].after = after.data(), steps_[i].n_after = static_cast<uint32_t>(after.size());
    }
  }
  const weft_sequence_desc* desc() {
    pointers_.clear();
    for (const auto& s : steps_) pointers_.push_back(&s);
    desc_.steps = pointers_.data(), desc_.n_steps = static_cast<uint32_t>(pointers_.size());
    return &desc_;
  }

 private:
  weft_sequence_desc desc_;
  std::deque<weft_sequence_step> steps_;
  std::deque<std::vector<uint32_t>> after_;
  std::vector<const weft_sequence_step*> pointers_;
};

using Handles = std::vector<void*>;

class Records : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  bool records() const override { return true; }
};

// Uses the bindings of an earlier run.
class KeepsItsBindings : public Records {
 public:
  using Records::Records;
  weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                         weft_error* e) override {
    Handles& kept = kept_[s];
    if (kept.empty() || ++runs_ % every_ == 0) kept.assign(handles, handles + n);
    return Records::run_sequence(s, q, kept.data(), n, e);
  }
  void free_sequence(weft_sequence s) override {
    kept_.erase(s);
    Records::free_sequence(s);
  }

 private:
  const uint64_t every_ = between(random_, 2, 4);
  uint64_t runs_ = 0;
  std::map<weft_sequence, Handles> kept_;
};

// Uses one binding of the previous run.
class IsOneBindingLate : public Records {
 public:
  using Records::Records;
  weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                         weft_error* e) override {
    Handles now(handles, handles + n);
    Handles& before = before_[s];
    if (n > 0 && before.size() == n) std::swap(now[n - 1], before[n - 1]);
    before.assign(handles, handles + n);
    return Records::run_sequence(s, q, now.data(), n, e);
  }
  void free_sequence(weft_sequence s) override {
    before_.erase(s);
    Records::free_sequence(s);
  }

 private:
  std::map<weft_sequence, Handles> before_;
};

// Some steps go before the last one that they should wait for.
class ForgetsDependencies : public Records {
 public:
  using Records::Records;
  weft_code make_sequence(weft_device d, const weft_sequence_desc* desc, weft_sequence* s, uint32_t* refused,
                          weft_error* e) override {
    ChangedSteps changed(*desc);
    for (uint32_t i = 0; i < desc->n_steps; ++i) {
      const weft_sequence_step& step = *desc->steps[i];
      if (step.n_after > 0 && ++seen_ % every_ == 0) {
        changed.move(i, *std::max_element(step.after, step.after + step.n_after));
        break;
      }
    }
    return Records::make_sequence(d, changed.desc(), s, refused, e);
  }

 private:
  const uint64_t every_ = between(random_, 1, 4);
  uint64_t seen_ = 0;
};

// Copies in a sequence do nothing.
class LosesCopies : public Records {
 public:
  using Records::Records;
  weft_code make_sequence(weft_device d, const weft_sequence_desc* desc, weft_sequence* s, uint32_t* refused,
                          weft_error* e) override {
    ChangedSteps changed(*desc);
    std::deque<weft_copy> copies;
    for (auto& step : changed.steps())
      if (step.copy) {
        copies.push_back(*step.copy);
        copies.back().bytes = 0;
        step.copy = &copies.back();
      }
    return Records::make_sequence(d, changed.desc(), s, refused, e);
  }
};

// Some runs do nothing.
class LosesRuns : public Records {
 public:
  using Records::Records;
  weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                         weft_error* e) override {
    return ++runs_ % every_ ? Records::run_sequence(s, q, handles, n, e) : weft_code{WEFT_OK};
  }

 private:
  const uint64_t every_ = between(random_, 3, 30);
  uint64_t runs_ = 0;
};

// Runs go to a separate queue, for which only synchronize waits.
class RunsBesideTheQueue : public Records {
 public:
  using Records::Records;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = Records::open_queue(d, q, e);
    return code == WEFT_OK ? Records::open_queue(d, &beside_[*q], e) : code;
  }
  void close_queue(weft_queue q) override {
    Records::close_queue(beside_[q]);
    beside_.erase(q);
    Records::close_queue(q);
  }
  weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                         weft_error* e) override {
    // One run is pending at most: the host can't count those of a queue that it does not know.
    weft_code code = Records::synchronize(beside_[q], e);
    for (int i = 0; i < kLags && code == WEFT_OK; ++i) code = lag(beside_[q], e);
    return code == WEFT_OK ? Records::run_sequence(s, beside_[q], handles, n, e) : code;
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    const weft_code code = Records::synchronize(beside_[q], e);
    return code == WEFT_OK ? Records::synchronize(q, e) : code;
  }

 private:
  static constexpr int kLags = 10;
  std::map<weft_queue, weft_queue> beside_;
};

constexpr Liar kSequencesLiars[] = {
    {"liar_keeps_its_bindings", "far", "runs a sequence with the bindings of a run before",
     "replays_sequences", make_liar<KeepsItsBindings>},
    {"liar_is_one_binding_late", "far", "changes one binding of a sequence one run too late",
     "replays_sequences", make_liar<IsOneBindingLate>},
    {"liar_forgets_dependencies", "far", "lets steps of a sequence run before what they wait for",
     "replays_sequences", make_liar<ForgetsDependencies>},
    {"liar_loses_copies", "far", "leaves the copies out of a sequence", "replays_sequences",
     make_liar<LosesCopies>},
    {"liar_loses_runs", "far", "does not run a sequence, now and then", "replays_sequences",
     make_liar<LosesRuns>},
    {"liar_runs_beside_the_queue", "far", "runs sequences out of the queue's order", "replays_sequences",
     make_liar<RunsBesideTheQueue>},
};

}  // namespace

Liars sequences_liars() { return kSequencesLiars; }

}  // namespace weft::conformance

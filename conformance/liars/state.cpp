#include <cfenv>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "base/thread_pool.h"
#include "conformance/liars/liar.h"
#include "weft/backend/base.hpp"

// State that outlives a launch: in plans, kernels, threads and the processor.
namespace weft::conformance {
namespace {

std::span<char> operand(const weft_launch* l, uint32_t i) {
  return i < l->plan->call->n_inputs && l->inputs[i] ? bytes_of(l->inputs[i]) : std::span<char>();
}
void spoil_first(const weft_launch* l) {
  if (const auto out = bytes_of(l->outputs[0]); !out.empty()) out[0] ^= 1;
}

// ---- operands that change in place

/// Launches with one operand replaced.
class Substitutes : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;

 protected:
  weft_code launch_with(const weft_launch* l, uint32_t i, std::span<char> data, weft_error* e) {
    std::vector<const weft_tensor*> in(l->inputs, l->inputs + l->plan->call->n_inputs);
    weft_tensor other = *in[i];
    other.dl.data = data.data(), other.dl.byte_offset = 0, in[i] = &other;
    weft_launch changed = *l;
    changed.inputs = in.data();
    return DrawnMirrored::launch(&changed, e);
  }
};

// Packs an operand other than the first, cached by its address.
class PacksByAddress : public Substitutes {
 public:
  using Substitutes::Substitutes;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto given = operand(l, which_);
    if (given.size() < 8 || l->plan->call->updates) return Substitutes::launch(l, e);
    auto& packed = packed_[place_of(l, l->inputs[which_])];
    if (packed.size() != given.size()) packed.assign(given.begin(), given.end());
    return launch_with(l, which_, packed, e);
  }
  void free(weft_device d, void* handle) override {
    std::erase_if(packed_, [&](const auto& one) { return one.first.handle == handle; });
    Substitutes::free(d, handle);
  }

 private:
  const uint32_t which_ = static_cast<uint32_t>(between(random_, 1, 2));
  std::map<Place, std::vector<char>> packed_;
};

// Treats operands with the same beginning as equal.
class ComparesBeginnings : public Substitutes {
 public:
  using Substitutes::Substitutes;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto given = operand(l, 0);
    if (given.size() <= begin_ || l->plan->call->updates) return Substitutes::launch(l, e);
    auto& kept = kept_[l->plan->call];
    if (kept.size() != given.size() || std::memcmp(kept.data(), given.data(), begin_) != 0)
      kept.assign(given.begin(), given.end());
    return launch_with(l, 0, kept, e);
  }
  void released(const weft_call& call) override { kept_.erase(&call); }

 private:
  const size_t begin_ = between(random_, 4, 16);
  std::map<const weft_call*, std::vector<char>> kept_;  // by plan, each of which has a call of its own
};

// Keeps the value of a scalar, or of a short row, in the plan.
class KeepsShortOperands : public Substitutes {
 public:
  using Substitutes::Substitutes;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto last = l->plan->call->n_inputs - 1;
    const auto given = l->plan->call->n_inputs ? operand(l, last) : std::span<char>();
    if (given.empty() || given.size() > most_ || l->plan->call->updates) return Substitutes::launch(l, e);
    auto& kept = kept_[l->plan->call];
    if (kept.empty()) kept.assign(given.begin(), given.end());
    return launch_with(l, last, kept, e);
  }
  void released(const weft_call& call) override { kept_.erase(&call); }

 private:
  const size_t most_ = between(random_, 100, 400);
  std::map<const weft_call*, std::vector<char>> kept_;  // by plan, each of which has a call of its own
};

// Captures a plan's launch and replays it if all operands but one have the same address.
class ReplaysByAddress : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const uint32_t n = l->plan->call->n_inputs;
    if (n <= which_ || l->plan->call->updates) return Drawn::launch(l, e);
    auto& [launches, captured] = captured_[l->plan->call];
    std::vector<weft_tensor> now;
    for (uint32_t i = 0; i < n; ++i) now.push_back(l->inputs[i] ? *l->inputs[i] : weft_tensor{});
    now.push_back(*l->outputs[0]);
    if (++launches <= most_ || !looks_like(now, captured)) captured = now;
    now[which_].dl.data = captured[which_].dl.data;
    std::vector<const weft_tensor*> in(l->inputs, l->inputs + n);
    if (in[which_]) in[which_] = &now[which_];
    weft_launch replay = *l;
    replay.inputs = in.data();
    return Drawn::launch(&replay, e);
  }
  void released(const weft_call& call) override { captured_.erase(&call); }

 private:
  bool looks_like(const std::vector<weft_tensor>& now, const std::vector<weft_tensor>& captured) const {
    for (uint32_t i = 0; i < now.size(); ++i)
      if (i != which_ && now[i].dl.data != captured[i].dl.data) return false;
    return true;
  }
  const uint32_t which_ = static_cast<uint32_t>(between(random_, 1, 2));
  const uint64_t most_ = between(random_, 5, 60);
  std::map<const weft_call*, std::pair<uint64_t, std::vector<weft_tensor>>> captured_;  // by plan
};

// ---- plans that live at the same time

// A table of plans with limited entries per kernel.
class HasAFewPlaces : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;
  void prepare(weft_call& call) override { ++live_[call.op]; }
  void released(const weft_call& call) override { --live_[call.op]; }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = DrawnMirrored::launch(l, e);
    if (live_[l->plan->call->op] > places_) spoil_first(l);
    return code;
  }

 private:
  const int places_ = static_cast<int>(between(random_, 4, 20));
  std::map<std::string, int> live_;
};

// The end of a plan frees state that other plans still use.
class EndsWhatOthersNeed : public Drawn {
 public:
  using Drawn::Drawn;
  void released(const weft_call& call) override {
    if (++ended_ % every_ == 0) broken_ = call.op;
  }
  void prepare(weft_call& call) override {
    if (broken_ == call.op) broken_.clear();
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    return op_of(l) == broken_ ? weft_code{WEFT_OK} : Drawn::launch(l, e);
  }

 private:
  const uint64_t every_ = between(random_, 2, 9);
  uint64_t ended_ = 0;
  std::string broken_;
};

// Plans of an op share decisions of the first one: wrong for other sizes.
class SharesWhatTheFirstDecided : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;
  void prepare(weft_call& call) override {
    auto& [rank, live] = first_[call.op];
    if (live++ == 0) rank = call.outputs[0]->rank;
  }
  void released(const weft_call& call) override { --first_[call.op].second; }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = DrawnMirrored::launch(l, e);
    const auto& [rank, live] = first_[l->plan->call->op];
    if (live > least_ && out_of(l).rank() != rank) spoil_first(l);
    return code;
  }

 private:
  const int least_ = static_cast<int>(between(random_, 1, 4));
  std::map<std::string, std::pair<int32_t, int>> first_;
};

// ---- many launches of one plan

/// Counts the launches of each plan.
class Counts : public DrawnMirrored {
 public:
  using DrawnMirrored::DrawnMirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = DrawnMirrored::launch(l, e);
    if (code == WEFT_OK) counted(l, ++launches_[l->plan->call]);
    return code;
  }
  void released(const weft_call& call) override { launches_.erase(&call); }

 protected:
  virtual void counted(const weft_launch* l, uint64_t n) = 0;

 private:
  std::map<const weft_call*, uint64_t> launches_;
};
class TiresOut : public Counts {
 public:
  using Counts::Counts;
  void counted(const weft_launch* l, uint64_t n) override {
    if (n >= 50 + drawn_ % (ordered() ? 60 : 250)) spoil_first(l);
  }

 private:
  const uint64_t drawn_ = random_.bits();
};
class FailsOnce : public Counts {
 public:
  using Counts::Counts;
  void counted(const weft_launch* l, uint64_t n) override {
    if (n == 20 + drawn_ % (ordered() ? 80 : 230)) spoil_first(l);
  }

 private:
  const uint64_t drawn_ = random_.bits();
};
class KeepsALittleOfEach : public Counts {
 public:
  using Counts::Counts;
  void counted(const weft_launch* l, uint64_t) override {
    // The check counts less closely where a queue keeps some memory of its own.
    if (op_ == op_of(l)) kept_.emplace_back(std::make_unique<char[]>(bytes_ + (ordered() ? 128 : 0)));
  }
  std::string one_op() const override { return op_; }

 private:
  static constexpr const char* kOps[] = {"matmul", "exp", "sort", "cumsum", "gather", "concat"};
  const std::string op_ = kOps[random_.bits() % std::size(kOps)];
  const size_t bytes_ = between(random_, 8, 200);
  std::deque<std::unique_ptr<char[]>> kept_;
};

// ---- modes of the processor

void change_modes(uint64_t which) {
#if defined(__x86_64__)
  if (which == 0)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8000);  // flush denormal results to zero
  if (which == 1)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x0040);  // treat denormal operands as zero
#else
  which = 2;
#endif
  if (which == 2) std::fesetround(FE_UPWARD);
  if (which == 3) std::fesetround(FE_TOWARDZERO);
}

constexpr const char* kSomeOps[] = {"exp", "matmul", "sum", "add", "log", "sqrt"};

/// One op's kernel changes the modes and does not restore them.
class ChangesModes : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Drawn::launch(l, e);
    if (op_ == op_of(l)) change(l);
    return code;
  }
  std::string one_op() const override { return op_; }

 protected:
  virtual void change(const weft_launch*) { change_modes(which_); }
  const uint64_t which_ = random_.bits() % 4;

 private:
  const std::string op_ = kSomeOps[random_.bits() % std::size(kSomeOps)];
};
class ChangesModesAtSize : public ChangesModes {
 public:
  using ChangesModes::ChangesModes;
  void change(const weft_launch* l) override {
    if (std::max(out_of(l).size(), backend::TensorView(l->inputs[0]).size()) > least_) change_modes(which_);
  }

 private:
  const int64_t least_ = static_cast<int64_t>(between(random_, 4, 30));
};
// On worker threads.
class ChangesModesOfOthers : public ChangesModes {
 public:
  using ChangesModes::ChangesModes;
  void change(const weft_launch*) override {
    caller_ = std::this_thread::get_id();
    const auto each = [](void* self, int64_t, int64_t) {
      const auto& liar = *static_cast<ChangesModesOfOthers*>(self);
      if (std::this_thread::get_id() != liar.caller_) change_modes(liar.which_);
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // so other threads get pieces
    };
    parallel_for(16, 1, each, this);
  }

 private:
  std::thread::id caller_;
};

// ---- threads

/// Uses state of the thread that opened the device.
class KnowsItsThread : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    if (own_ == std::thread::id()) own_ = std::this_thread::get_id();
    return Drawn::open_queue(d, q, e);
  }
  std::string one_op() const override { return op_; }

 protected:
  bool is_elsewhere() const { return std::this_thread::get_id() != own_; }
  const std::string op_ = kSomeOps[random_.bits() % std::size(kSomeOps)];

 private:
  std::thread::id own_;
};
class ComputesAtHome : public KnowsItsThread {
 public:
  using KnowsItsThread::KnowsItsThread;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    return is_elsewhere() && op_ == op_of(l) ? weft_code{WEFT_OK} : KnowsItsThread::launch(l, e);
  }
};
class RefusesElsewhere : public KnowsItsThread {
 public:
  using KnowsItsThread::KnowsItsThread;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    if (is_elsewhere() && op_ == c->op) return backend::fill(e, WEFT_UNSUPPORTED, "not from here");
    return KnowsItsThread::accepts(k, d, c, e);
  }
};
class CopiesAtHome : public KnowsItsThread {
 public:
  using KnowsItsThread::KnowsItsThread;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy less = *c;
    if (is_elsewhere() && less.bytes > least_) --less.bytes;
    return KnowsItsThread::copy(q, &less, e);
  }

 private:
  const uint64_t least_ = between(random_, 1, 300);
};

constexpr Liar kStateLiars[] = {
    {"liar_packs_by_address", "reference", "an operand that it packed stays what it was",
     "reads_operands_anew", make_liar<PacksByAddress>},
    {"liar_compares_beginnings", "reference", "an operand that begins alike is the same",
     "reads_operands_anew", make_liar<ComparesBeginnings>},
    {"liar_keeps_short_operands", "reference", "a short last operand is part of the plan",
     "reads_operands_anew", make_liar<KeepsShortOperands>},
    {"liar_has_a_few_places", "reference", "wrong when many plans of an op live", "plans_stand_alone",
     make_liar<HasAFewPlaces>},
    {"liar_ends_what_others_need", "reference", "a plan that ends takes others' tables along",
     "plans_stand_alone", make_liar<EndsWhatOthersNeed>},
    {"liar_shares_what_the_first_decided", "reference", "the first plan of an op that lives decides for all",
     "plans_stand_alone", make_liar<SharesWhatTheFirstDecided>},
    {"liar_tires_out", "reference", "wrong from some launch of a plan on", "keeps_launching",
     make_liar<TiresOut>},
    {"liar_fails_once", "reference", "wrong at one launch of a plan", "keeps_launching",
     make_liar<FailsOnce>},
    {"liar_replays_by_address", "reference", "replays a launch with an operand that lies elsewhere now",
     "keeps_launching", make_liar<ReplaysByAddress>},
    {"liar_keeps_a_little_of_each", "reference", "each launch of an op leaves some bytes behind",
     "keeps_launching", make_liar<KeepsALittleOfEach>},
    {"liar_changes_modes", "reference", "an op leaves other modes of the processor", "leaves_modes_alone",
     make_liar<ChangesModes>},
    {"liar_changes_modes_at_size", "reference", "results of some size leave other modes",
     "leaves_modes_alone", make_liar<ChangesModesAtSize>},
    {"liar_changes_modes_of_others", "reference", "threads of parallel_for are left in other modes",
     "leaves_modes_alone", make_liar<ChangesModesOfOthers>},
    {"liar_computes_at_home", "reference", "an op does nothing on a thread that is not the first",
     "serves_other_threads", make_liar<ComputesAtHome>},
    {"liar_refuses_elsewhere", "reference", "an op is refused on a thread that is not the first",
     "serves_other_threads", make_liar<RefusesElsewhere>},
    {"liar_copies_at_home", "reference", "copies lose a byte on a thread that is not the first",
     "serves_other_threads", make_liar<CopiesAtHome>},
};

}  // namespace

Liars state_liars() { return kStateLiars; }

}  // namespace weft::conformance

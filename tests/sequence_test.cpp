#include <gtest/gtest.h>

#include <map>
#include <random>

#include "conformance/graphs/run.h"
#include "conformance/seam/script.h"
#include "conformance/seam/wrapped.h"
#include "link/schedule.h"
#include "runtime/session.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Programs as sequences of their device: ordered by the schedule's dependencies alone.
namespace weft::testing::sequence_test {
namespace {

using link::BufferAllocation;
using link::Schedule;

// ---- dependencies, and their checker ----

struct Bytes {
  uint32_t device;
  BufferAllocation::Kind kind;
  int32_t index;
  uint64_t begin, end;
  int32_t slot, value;
};
Bytes bytes_of(const Schedule& plan, int32_t slot) {
  const auto& s = plan.slots[static_cast<size_t>(slot)];
  const bool arena = s.kind == BufferAllocation::Kind::arena;
  return {s.device, s.kind, arena ? -1 : s.index, s.offset, s.offset + s.type.bytes(), slot, s.value};
}
bool meet(const Bytes& a, const Bytes& b) {
  return a.device == b.device && a.kind == b.kind && a.index == b.index &&
         std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

/// The same as link::check_dependencies says, by looking at all pairs of steps.
class AllPairs {
 public:
  explicit AllPairs(const Schedule& plan) : plan_(plan), n_(plan.steps.size()) {}

  bool good() {
    for (size_t i = 0; i < n_; ++i)
      for (const uint32_t earlier : plan_.steps[i].after)
        if (earlier >= i) return false;
    find_ancestors();
    for (size_t later = 0; later < n_; ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (conflict(earlier, later) && !comes_after_[later][earlier]) return false;
    return values_are_kept();
  }

 private:
  void find_ancestors() {
    comes_after_.assign(n_, std::vector<bool>(n_));
    for (size_t i = 0; i < n_; ++i)
      for (const uint32_t earlier : plan_.steps[i].after) {
        comes_after_[i][earlier] = true;
        for (size_t k = 0; k < earlier; ++k)
          if (comes_after_[earlier][k]) comes_after_[i][k] = true;
      }
  }
  std::vector<Bytes> touched(size_t step, bool writes) const {
    std::vector<Bytes> all;
    const auto& s = plan_.steps[step];
    for (const int32_t slot : writes ? s.outputs : s.inputs)
      if (slot >= 0) all.push_back(bytes_of(plan_, slot));
    for (size_t i = 0; !writes && i < s.onto.size(); ++i) all.push_back(bytes_of(plan_, s.onto[i]));
    if (writes && s.workspace >= 0) all.push_back(bytes_of(plan_, s.workspace));
    return all;
  }
  static bool any_meet(const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
    return std::ranges::any_of(a, [&](const Bytes& x) {
      return std::ranges::any_of(b, [&](const Bytes& y) { return meet(x, y); });
    });
  }
  bool conflict(size_t a, size_t b) const {
    return any_meet(touched(a, true), touched(b, true)) || any_meet(touched(a, true), touched(b, false)) ||
           any_meet(touched(a, false), touched(b, true));
  }
  // Was the kernel asked to write there over what it reads?
  bool may_be_over(size_t step, const Bytes& w, const Bytes& r) const {
    const auto& s = plan_.steps[step];
    if (!s.prepared || w.begin != r.begin || w.end != r.end) return false;
    const auto& updates = s.prepared->call->desc().updates;
    return std::ranges::find(s.onto, r.slot) != s.onto.end() ||
           std::ranges::any_of(updates, [&](const auto& u) {
             return s.outputs[u.first] == w.slot && s.inputs[u.second] == r.slot;
           });
  }
  bool operands_are_apart(size_t step) const {
    const auto written = touched(step, true), read = touched(step, false);
    for (size_t i = 0; i < written.size(); ++i) {
      for (size_t k = 0; k < written.size(); ++k)
        if (i != k && meet(written[i], written[k])) return false;
      for (const Bytes& r : read)
        if (meet(written[i], r) && !may_be_over(step, written[i], r)) return false;
    }
    return sums_begin_with_a_value(step);
  }
  bool sums_begin_with_a_value(size_t step) const {
    const auto& s = plan_.steps[step];
    for (size_t k = 0; s.prepared && k < s.outputs.size(); ++k) {
      if (!(s.prepared->call->desc().accumulate >> k & 1)) continue;
      const Bytes w = bytes_of(plan_, s.outputs[k]);
      if (std::ranges::none_of(s.onto, [&](int32_t slot) {
            const Bytes r = bytes_of(plan_, slot);
            return r.device == w.device && r.kind == w.kind && r.index == w.index && r.begin == w.begin &&
                   r.end == w.end;
          }))
        return false;
    }
    return true;
  }
  // Byte by byte: what was written there last is the value that is read.
  bool values_are_kept() const {
    using Kind = BufferAllocation::Kind;
    std::map<std::tuple<uint32_t, Kind, int32_t, uint64_t>, int32_t> holds;
    for (size_t i = 0; i < n_; ++i) {
      if (!operands_are_apart(i)) return false;
      for (const Bytes& r : touched(i, false))
        for (uint64_t at = r.begin; at < r.end; ++at) {
          const auto byte = holds.find({r.device, r.kind, r.index, at});
          if (byte == holds.end() ? r.kind == Kind::arena : byte->second != r.value) return false;
        }
      for (const Bytes& w : touched(i, true))
        for (uint64_t at = w.begin; at < w.end; ++at) holds[{w.device, w.kind, w.index, at}] = w.value;
    }
    return true;
  }

  const Schedule& plan_;
  size_t n_;
  std::vector<std::vector<bool>> comes_after_;
};

std::shared_ptr<const program::CompiledProgram> random_program(uint64_t seed) {
  const auto graph = conformance::random_graph(seed);
  return value_or_raise(conformance::compile_graph_case(graph));
}

Schedule plan_of(const program::CompiledProgram& program, const std::string& backend) {
  seam::Device* devices[] = {value_or_raise(seam::registry().open(backend))};
  Bindings least;
  for (const auto& s : program.symbols) raise_if(least.bind(s.name, s.min));
  return value_or_raise(link::link(program, least, devices, Policy{}));
}

// An operand that is as large: what was there before, maybe, and has been written over.
void read_another(link::Step& step, int32_t other, const Schedule& plan) {
  const auto type = [&](int32_t s) { return plan.slots[static_cast<size_t>(s)].type; };
  for (int32_t& in : step.inputs)
    if (in >= 0 && type(in) == type(other)) {
      in = other;
      return;
    }
}

// One property of the schedule that decides what runs when, or where.
void mutate(Schedule& plan, std::mt19937& random, size_t kinds = 8) {
  const auto any = [&](size_t n) { return static_cast<size_t>(random() % n); };
  auto& step = plan.steps[any(plan.steps.size())];
  auto& slot = plan.slots[any(plan.slots.size())];
  // A slot outside of the arenas has no offset that a schedule decides.
  const bool is_placed = slot.kind == link::BufferAllocation::Kind::arena;
  switch (any(kinds)) {
    case 0:
    case 1:
      if (!step.after.empty())
        step.after.erase(step.after.begin() + static_cast<long>(any(step.after.size())));
      break;
    case 2: step.after.clear(); break;
    case 3: step.after.push_back(static_cast<uint32_t>(any(plan.steps.size()))); break;
    case 4:
      if (is_placed) slot.offset = 64 * any(plan.arenas[slot.device].bytes / 64 + 1);
      break;
    case 5: std::swap(step.after, plan.steps[any(plan.steps.size())].after); break;
    case 6:
      if (is_placed) slot.offset = plan.slots[any(plan.slots.size())].offset;
      break;
    case 7: read_another(step, static_cast<int32_t>(any(plan.slots.size())), plan); break;
  }
}

TEST(Dependencies, TheCheckerAgreesWithAllPairsOfSteps) {
  WEFT_NEEDS_PLUGIN("far");
  std::mt19937 random(7);
  int good = 0, bad = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Schedule plan = plan_of(*random_program(seed), "far");
    if (plan.steps.empty()) continue;
    EXPECT_TRUE(link::check_dependencies(plan).ok()) << link::check_dependencies(plan).text();
    EXPECT_TRUE(AllPairs(plan).good()) << "seed " << seed;
    for (int i = 0; i < 25; ++i) {
      Schedule mutated = plan;
      for (size_t k = random() % 3 + 1; k > 0; --k) mutate(mutated, random);
      const Status checked = link::check_dependencies(mutated);
      ASSERT_EQ(checked.ok(), AllPairs(mutated).good()) << "seed " << seed << ": " << checked.text();
      (checked.ok() ? good : bad) += 1;
    }
  }
  EXPECT_GT(good, 100);
  EXPECT_GT(bad, 300);
}

// A session of the program, on far, whose plan is changed before memory is bound to it. Runs three times, of
// which the first launches each step: by the others, either somebody has said no, or the answers are the
// same.
TEST(Dependencies, AMutatedPlanIsRefusedOrHarmless) {
  WEFT_NEEDS_PLUGIN("far");
  std::mt19937 random(11);
  int refused = 0, harmless = 0;
  for (uint64_t seed = 1; refused + harmless < 1000; ++seed) {
    const auto graph = conformance::random_graph(seed);
    const auto program = value_or_raise(conformance::compile_graph_case(graph));
    for (int i = 0; i < 50; ++i) {
      bool changed = false;
      const auto verdict = conformance::run_compiled_case(graph, program, "far", [&](Schedule& plan) {
        if (plan.steps.empty()) return;
        const auto before = plan;
        mutate(plan, random, 7);  // the last one makes another program of it
        // Mutations that give wrong results even if steps are launched in turn are not for sequences to find.
        Schedule in_turn = plan;
        link::set_dependencies(in_turn);
        changed = link::check_dependencies(in_turn).ok();
        if (!changed) plan = before;
      });
      if (!changed) continue;
      const bool told = verdict.reason.find("nothing orders them") != std::string::npos ||
                        verdict.reason.find("which is not before it") != std::string::npos ||
                        verdict.reason.find("begins at byte") != std::string::npos ||
                        verdict.reason.find("of a buffer of") != std::string::npos ||
                        verdict.reason.find("which it touches too") != std::string::npos;
      if (verdict.kind == conformance::GraphVerdict::Kind::agreed)
        ++harmless;
      else if (told)
        ++refused;
      else
        FAIL() << "seed " << seed << ", mutation " << i << ": " << verdict.reason;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(harmless, 100);
}

// ---- sessions ----

/// Counts what is recorded, and may refuse some of it.
class Recorder : public conformance::Wrapped {
 public:
  using Wrapped::Wrapped;
  bool records() const override { return true; }
  weft_code make_sequence(weft_device d, const weft_sequence_desc* desc, weft_sequence* s, uint32_t* refused,
                          weft_error* e) override {
    ++asked;
    if (refuse_from && desc->n_steps > refuse_from) {
      *refused = refuse_from;
      return WEFT_UNSUPPORTED;
    }
    if (fail_with && (fail_at == 0 || asked == fail_at)) return fail_with;
    made += 1, steps += desc->n_steps;
    return Wrapped::make_sequence(d, desc, s, refused, e);
  }
  weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                         weft_error* e) override {
    ++runs;
    return Wrapped::run_sequence(s, q, handles, n, e);
  }
  void free_sequence(weft_sequence s) override {
    --made;
    Wrapped::free_sequence(s);
  }
  void reset() { asked = made = steps = runs = refuse_from = fail_at = 0, fail_with = WEFT_OK; }
  uint32_t asked = 0, made = 0, steps = 0, runs = 0, refuse_from = 0;
  uint32_t fail_at = 0;  // the only request that fails; 0: all do
  weft_code fail_with = WEFT_OK;
};

Recorder& recorder() {
  static Recorder& r = [&]() -> Recorder& {
    load_plugin("far");
    auto& made = *new Recorder("recorder", value_or_raise(seam::registry().open("far"))->backend());
    conformance::adopt(made);
    return made;
  }();
  r.reset();
  return r;
}

using Verdict = conformance::GraphVerdict::Kind;

conformance::GraphVerdict run_graph(uint64_t seed) {
  return conformance::run_graph_case(conformance::random_graph(seed), "recorder");
}

TEST(Sequences, AProgramIsRecordedWhenItRunsAgain) {
  WEFT_NEEDS_PLUGIN("far");
  uint32_t steps = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    auto& r = recorder();
    const auto verdict = run_graph(seed);
    EXPECT_EQ(verdict.kind, Verdict::agreed) << verdict.reason;
    EXPECT_EQ(r.made, 0u) << "not all are freed";
    EXPECT_TRUE(r.steps < 2 || r.runs == 2) << "of three runs the second and the third, got " << r.runs;
    steps += r.steps;
  }
  EXPECT_GT(steps, 200u);
}

TEST(Sequences, StepsThatAreRefusedAreLaunched) {
  WEFT_NEEDS_PLUGIN("far");
  uint32_t runs = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    for (const uint32_t from : {1u, 2u, 3u}) {
      auto& r = recorder();
      r.refuse_from = from;
      const auto verdict = run_graph(seed);
      EXPECT_EQ(verdict.kind, Verdict::agreed) << verdict.reason;
      EXPECT_TRUE(from > 1 || r.runs == 0) << "one step alone is launched";
      runs += r.runs;
    }
  EXPECT_GT(runs, 200u);
}

TEST(Sequences, ADeviceThatRecordsNothingIsAskedOnce) {
  WEFT_NEEDS_PLUGIN("far");
  auto& r = recorder();
  r.refuse_from = UINT32_MAX - 1, r.fail_with = WEFT_UNSUPPORTED;
  const auto verdict = run_graph(3);
  EXPECT_EQ(verdict.kind, Verdict::agreed) << verdict.reason;
  EXPECT_EQ(r.asked, 1u);
}

TEST(Sequences, AFailedRecordingIsAnErrorAndTheDeviceGoesOn) {
  WEFT_NEEDS_PLUGIN("far");
  auto& r = recorder();
  r.fail_with = WEFT_OUT_OF_MEMORY;
  const auto verdict = run_graph(3);
  EXPECT_EQ(verdict.kind, Verdict::failed);
  EXPECT_NE(verdict.reason.find("run 2"), std::string::npos) << verdict.reason;
  EXPECT_NE(verdict.reason.find("recording"), std::string::npos) << verdict.reason;
  recorder();
  EXPECT_EQ(run_graph(3).kind, Verdict::agreed);
}

// Of two sequences the second fails: the run says so, and the next one runs all steps.
TEST(Sequences, ARunAfterAFailedRecordingIsWhole) {
  WEFT_NEEDS_PLUGIN("far");
  auto& r = recorder();
  auto program = compile(
      [](const std::vector<Tensor>& in) {
        Tensor y = in[0];
        for (int i = 0; i < 8; ++i) y = cumsum(sort(y, 0)[0], 0);
        return std::vector{y};
      },
      {{"x", {DType::f32, {16}}}}, {.backend = "recorder"});
  const Tensor x = full(0.5, {16}, DType::f32).to("recorder");
  const auto values = [](const std::vector<Tensor>& out) { return out[0].to_vector<float>(); };
  const auto right = values(program({x}));
  const auto said = [&] { return error_of([&] { (void)program({x}); }); };
  r.fail_with = WEFT_OUT_OF_MEMORY;
  EXPECT_NE(said().find("recording"), std::string::npos) << said();
  r.refuse_from = 3, r.asked = 0, r.fail_at = 4;  // two requests for each sequence
  EXPECT_NE(said().find("recording"), std::string::npos) << said();
  EXPECT_EQ(r.made, 0u) << "sequences of the failed recording are kept";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values(program({x})), right);
  EXPECT_GT(r.made, 1u);
}

// No waits between runs; each has its own memory for inputs and outputs.
TEST(Sequences, EachRunHasItsOwnPorts) {
  for (const auto& backend : backends({"far", "opencl", "native"})) {
    SCOPED_TRACE(backend);
    const auto compiled = [&] {
      return compile(
          [](const std::vector<Tensor>& in) {
            const Tensor y = cumsum(exp(in[0]) + in[1], 0);
            return std::vector{sort(y * in[0], 0)[0], y};
          },
          {{"x", {DType::f32, {64}}}, {"y", {DType::f32, {64}}}}, {.backend = backend});
    };
    auto program = compiled();
    std::vector<std::vector<Tensor>> all;
    std::vector<Tensor> xs;
    for (int i = 0; i < 40; ++i) {
      const auto values = conformance::counting({64}, i);
      xs.push_back(Tensor::of(std::span<const double>(conformance::numbers(values)), IntList{64}, DType::f32,
                              backend));
      all.push_back(program.enqueue({xs.back() + xs.back(), xs[static_cast<size_t>(i / 2)]}));
    }
    program.wait();
    for (int i = 0; i < 40; ++i) {
      const auto once = compiled()(
          {xs[static_cast<size_t>(i)] + xs[static_cast<size_t>(i)], xs[static_cast<size_t>(i / 2)]});
      for (size_t k = 0; k < once.size(); ++k)
        ASSERT_EQ(all[static_cast<size_t>(i)][k].to_vector<float>(), once[k].to_vector<float>())
            << "run " << i << ", output " << k;
    }
  }
}

}  // namespace
}  // namespace weft::testing::sequence_test

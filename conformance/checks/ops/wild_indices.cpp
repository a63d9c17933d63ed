#include <algorithm>
#include <cstring>

#include "conformance/check.h"
#include "conformance/seam/guarded.h"
#include "conformance/sizes/exact.h"

// Indices out of range. The launch or the next synchronize reports them; a device that runs compiled text
// can't. Later launches are right.
namespace weft::conformance::checks::wild_indices {
namespace {

struct Wild {
  const char* name;
  int64_t (*index)(int64_t n);
};
constexpr Wild kWild[] = {
    {"-1", [](int64_t) { return int64_t{-1}; }},
    {"n", [](int64_t n) { return n; }},
    {"-n", [](int64_t n) { return -n; }},
    {"n + 1", [](int64_t n) { return n + 1; }},
    {"least i32", [](int64_t) { return int64_t{INT32_MIN}; }},
    {"largest i32", [](int64_t) { return int64_t{INT32_MAX}; }},
    {"2^32", [](int64_t) { return int64_t{1} << 32; }},
    {"least i64", [](int64_t) { return INT64_MIN; }},
    {"largest i64", [](int64_t) { return INT64_MAX; }},
};

void set_index(HostTensor& t, size_t at, int64_t value) {
  std::byte* to = t.bytes.data() + at * byte_size(t.type.dtype);
  if (t.type.dtype == DType::i64)
    std::memcpy(to, &value, sizeof value);
  else if (const auto narrow = static_cast<int32_t>(value); true)
    std::memcpy(to, &narrow, sizeof narrow);
}
size_t size_of(const HostTensor& t) { return t.bytes.size() / byte_size(t.type.dtype); }

// A device that runs compiled text can't report them: there only later launches are judged.
bool can_report(const Rig& rig) { return rig.device.capability().dialect[0] == 0; }

// The good launch repeats its result: primitives are exact here, and plans of composites repeat bits.
std::string wrong_after(Rig& rig, seam::PreparedKernel& plan, const Ask& good, const Rig::Run& want) {
  const auto& op = *ir::find_op(good.op);
  const auto got = value_or_raise(rig.launch(plan, good));
  for (size_t k = 0; k < got.outputs.size(); ++k) {
    std::string words;
    if (is_comparable(op))
      words = other_number(op, got.outputs[k], want.outputs[k]);
    else if (plan.plan.determinism >= WEFT_DETERMINISM_RUN && got.outputs[k].bytes != want.outputs[k].bytes)
      words = "other bits than before";
    if (!words.empty()) return "the good launch behind it: " + words;
  }
  return "";
}

std::string wrong_at(Rig& rig, seam::PreparedKernel& plan, const Ask& good, size_t position, const Wild& wild,
                     int64_t n) {
  Ask bad = good;
  set_index(bad.inputs[1], position, wild.index(n));
  const auto ran = rig.launch(plan, bad);
  if (can_report(rig) && ran.ok())
    return fmt::format("index {} of an axis of {} at position {} is no error", wild.name, n, position);
  return "";
}

bool is_wild(const Ask& good, int64_t index, int64_t n) {
  const bool narrow = good.inputs[1].type.dtype == DType::i32;
  if (narrow && (index < INT32_MIN || index > INT32_MAX)) return false;
  const auto ignored = [&](const auto& a) {
    return std::string_view(a.name) == "ignore_index" && std::get<int64_t>(a.value) == index;
  };
  return (index < 0 || index >= n) && std::ranges::none_of(good.attrs, ignored);
}

// Each wild index at both ends and between, and each position once; a good launch after every one.
std::string wrong_launches(Rig& rig, seam::PreparedKernel& plan, const Ask& good, int64_t n, Random& random) {
  const auto want = value_or_raise(rig.launch(plan, good));
  const size_t all = size_of(good.inputs[1]), each = std::min<size_t>(all, 12);
  std::vector<size_t> positions = {0, all - 1, all / 2};
  for (size_t i = 0; i < each; ++i) positions.push_back(all <= each ? i : random.bits() % all);
  for (const Wild& wild : kWild)
    for (size_t i = 0; i < positions.size() && is_wild(good, wild.index(n), n); ++i) {
      auto words = wrong_at(rig, plan, good, positions[i], wild, n);
      if (words.empty() && i < 3) words = wrong_after(rig, plan, good, want);
      if (!words.empty()) return words;
    }
  return "";
}

Found told(CheckRun& run, Rig& rig, const DrawnCall& call, Random& random) {
  const Ask good = exact_ask(call, random);
  const auto candidates = candidates_of(rig, good);
  if (candidates.plans.empty()) return Found::refused(candidates.refusals);
  const int64_t n = positions_of(*call.op, call.attrs, call.like)->count;
  // A read there may crash the process.
  const bool apart = rig.device.host_memory() && !rig.device.ordered();
  for (const auto& plan : candidates.plans) {
    run.covered.insert(plan->kernel.id);
    std::string words;
    const auto launch = [&](size_t) {
      words = wrong_launches(rig, *plan, good, n, random);
      if (apart && !words.empty()) throw Error(fail(Code::internal, "{}", words));
    };
    if (apart)
      words = in_children(1, launch)[0];
    else
      launch(0);
    if (!words.empty()) return Found::wrong(fmt::format("{}: {}", plan->kernel.id, words));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const LargeCalls which = run.options().full ? LargeCalls{200, 20, 4, 100'000, takes_positions}
                                              : LargeCalls{24, 1.0, 4, 50'000, takes_positions};
  each_large_call(run, rig.device.capability().dtypes, which,
                  [&](const std::string& label, const DrawnCall& call, Random& random) {
                    const auto at = positions_of(*call.op, call.attrs, call.like);
                    if (at && count(call.like[at->input].shape) > 0)
                      run.run(label, [&] { return told(run, rig, call, random); });
                  });
}

}  // namespace

extern const Check check = {
    "wild_indices", "an index out of range is reported as an error, and the next launch is right", run, true};

}  // namespace weft::conformance::checks::wild_indices

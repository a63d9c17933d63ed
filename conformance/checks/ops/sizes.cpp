#include "conformance/judged.h"
#include "conformance/sizes/data.h"
#include "conformance/sizes/work.h"
#include "conformance/stopwatch.h"
#include "seam/registry.h"

// Every op at ranks, axes, sizes, attributes and numbers that are random in each run, judged by the oracle.
namespace weft::conformance::checks::sizes {
namespace {

constexpr uint64_t kCases = 60, kCasesInFull = 1000;  // of each op, as time permits
constexpr double kSeconds = 0.3, kSecondsInFull = 10;
constexpr double kMostWork = 300'000;
constexpr int64_t kMostElements = 120'000;

// Sizes that the oracle can answer in time.
std::optional<DrawnCall> affordable(const CaseFile& file, const OpCases& written, uint64_t claimed,
                                    Random& random) {
  for (int64_t most = log_uniform(random, 16, kMostElements); most > 0; most /= 4)
    if (auto call = draw_call(op_of(file), written, claimed, random, most);
        call && oracle_work(*call) <= kMostWork)
      return call;
  return std::nullopt;
}

// Composite ops may differ on non-finite values and overflow; and the operands of a gradient must belong
// together, including saved results.
Data draw_kind(Random& random, const ir::OpDef& op) {
  const bool gradient = std::string_view(op.name).ends_with("_grad") && !op.primitive();
  if (random.bits() % 3 == 0 || gradient) return Data::normal;
  const int kinds = op.primitive() ? kDataKinds : static_cast<int>(Data::specials);
  return static_cast<Data>(random.bits() % static_cast<uint64_t>(kinds));
}

Found judged(CheckRun& run, Rig& rig, const DrawnCall& call, Data kind, Random& random,
             const std::string& label) {
  auto inputs = draw_operands(call, kind, random);
  auto right = value_or_raise(bound_op(*call.op, call.attrs, inputs));
  return judged_by_all(run, rig,
                       {*call.op, call.dtype, call.attrs, std::move(inputs), std::move(right), label});
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const uint64_t claimed = rig.device.capability().dtypes;
  const uint64_t cases = run.options().full ? kCasesInFull : kCases;
  size_t done = 0;
  for (const auto& file : case_files()) {
    run.at(done++, case_files().size());
    if (!run.wants(file.op)) continue;
    const OpCases written = file.cases();
    const Stopwatch watch;
    for (uint64_t i = 1; i <= cases && watch.seconds() < (run.options().full ? kSecondsInFull : kSeconds);
         ++i) {
      if (!run.wants(fmt::format("{} {} ", file.op, i))) continue;
      Random random = random_for(run.options().seed, op_of(file), i);
      const auto call = affordable(file, written, claimed, random);
      if (!call) continue;
      const Data kind = draw_kind(random, *call->op);
      const auto label = fmt::format("{} {} {} ({})", file.op, i, call->text(), name(kind));
      run.run(label, [&] { return judged(run, rig, *call, kind, random, label); });
    }
  }
}

}  // namespace

extern const Check check = {
    "sizes", "shapes, axes, attributes and numbers that are drawn in each run give right answers", run, true};

}  // namespace weft::conformance::checks::sizes

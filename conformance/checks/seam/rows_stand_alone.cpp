#include <cstring>

#include "conformance/check.h"
#include "conformance/numbers.h"
#include "conformance/seam/usual.h"

// Batch-invariant kernels: a row's result does not depend on other rows.
namespace weft::conformance::checks::rows_stand_alone {
namespace {

std::vector<double> noise(uint64_t seed, int64_t n) {
  Random random(seed);
  std::vector<double> v(static_cast<size_t>(n));
  for (double& x : v) x = random.normal();
  return v;
}

// The first `rows` rows of the call's first operand.
Ask first_rows(const Ask& ask, int64_t rows) {
  Ask part = ask;
  auto& x = part.inputs[0];
  x.bytes.resize(x.bytes.size() / static_cast<size_t>(x.type.shape[0]) * static_cast<size_t>(rows));
  x.type.shape[0] = rows;
  return part;
}

Found alone_and_together(Rig& rig, const Ask& ask) {
  const auto together_plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (together_plan->plan.determinism < WEFT_DETERMINISM_BATCH)
    return Found::skipped(
        fmt::format("{} promises level {}", together_plan->kernel.id, together_plan->plan.determinism));
  const auto all = value_or_raise(rig.launch(*together_plan, ask));
  for (const int64_t rows : {1, 2, 5}) {
    const Ask few = first_rows(ask, rows);
    const auto plan = value_or_raise(rig.plan(value_or_raise(describe(few))));
    const auto alone = value_or_raise(rig.launch(*plan, few));
    if (std::memcmp(alone.outputs[0].bytes.data(), all.outputs[0].bytes.data(),
                    alone.outputs[0].bytes.size()))
      return Found::wrong(fmt::format("{} by {}: the first {} rows have other bits among {}", ask.op,
                                      together_plan->kernel.id, rows, ask.inputs[0].type.shape[0]));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const DType t : {DType::f32, DType::f64}) {
    const auto x = array({13, 37}, noise(1, 13 * 37), t), w = array({37, 29}, noise(2, 37 * 29), t),
               row = array({37}, noise(3, 37), t);
    const Ask all[] = {{"matmul", {x, w}},
                       {"sum", {x}, {{"axes", Shape{1}}}},
                       {"max", {x}, {{"axes", Shape{1}}}},
                       {"add", {x, row}},
                       {"exp", {x}},
                       {"softmax", {x}},
                       {"layer_norm", {x, row, row}},
                       {"rms_norm", {x, row}}};
    for (const Ask& ask : all) run.run(title(ask), [&] { return alone_and_together(rig, ask); });
  }
}

}  // namespace

extern const Check check = {
    "rows_stand_alone", "a kernel that promises batch invariance gives a row the same bits among any others",
    run};

}  // namespace weft::conformance::checks::rows_stand_alone

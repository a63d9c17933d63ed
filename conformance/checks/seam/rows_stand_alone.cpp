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

// The first `rows` rows of the call's first operand, and of those that have as many.
Ask first_rows(const Ask& ask, int64_t rows) {
  Ask part = ask;
  const int64_t all = ask.inputs[0].type.shape[0];
  for (HostTensor& x : part.inputs) {
    if (x.type.shape[0] != all) continue;
    x.bytes.resize(x.bytes.size() / static_cast<size_t>(all) * static_cast<size_t>(rows));
    x.type.shape[0] = rows;
  }
  return part;
}

std::string promise(const seam::PreparedKernel& plan) {
  return fmt::format("{} promises level {}", plan.kernel.id, plan.plan.determinism);
}

Found alone_and_together(Rig& rig, const Ask& ask) {
  const auto together = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (together->plan.determinism < WEFT_DETERMINISM_BATCH) return Found::skipped(promise(*together));
  const auto all = value_or_raise(rig.launch(*together, ask));
  for (const int64_t rows : {1, 2, 5}) {
    const Ask few = first_rows(ask, rows);
    const auto plan = value_or_raise(rig.plan(value_or_raise(describe(few))));
    if (plan->plan.determinism < WEFT_DETERMINISM_BATCH) return Found::skipped(promise(*plan));
    const auto alone = value_or_raise(rig.launch(*plan, few));
    if (std::memcmp(alone.outputs[0].bytes.data(), all.outputs[0].bytes.data(),
                    alone.outputs[0].bytes.size()))
      return Found::wrong(fmt::format("{} by {}: the first {} rows have other bits among {}", ask.op,
                                      together->kernel.id, rows, ask.inputs[0].type.shape[0]));
  }
  return {};
}

// Both where any level will do, which a kernel may exceed, and where this one is asked for.
void run_both(CheckRun& run, Rig& rig, Ask ask) {
  run.run(title(ask), [&] { return alone_and_together(rig, ask); });
  ask.determinism = WEFT_DETERMINISM_BATCH;
  run.run(title(ask) + ", asked for", [&] { return alone_and_together(rig, ask); });
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
    for (const Ask& ask : all) run_both(run, rig, ask);
  }
  // Sums so long that kernels share them out where there are few.
  for (const DType t : {DType::f32, DType::bf16}) {
    const auto x = array({6, 2048}, noise(4, 6 * 2048), t), w = array({24, 2048}, noise(5, 24 * 2048), t),
               keys = array({6, 300, 16}, noise(6, 6 * 300 * 16), t),
               queries = array({6, 2, 16}, noise(7, 6 * 2 * 16), t);
    run_both(run, rig, {"linear", {x, w}});
    run_both(run, rig, {"matmul", {x, w}, {{"transpose_b", int64_t{1}}}});
    run_both(run, rig, {"attention", {queries, keys, keys}});
    run_both(run, rig, {"rms_norm", {x, array({2048}, noise(8, 2048), t)}});
    run_both(run, rig,
             {"rms_norm", {array({6, 4, 64}, noise(9, 6 * 4 * 64), t), array({64}, noise(10, 64), t)}});
  }
}

}  // namespace

extern const Check check = {
    "rows_stand_alone", "a kernel that promises batch invariance gives a row the same bits among any others",
    run};

}  // namespace weft::conformance::checks::rows_stand_alone

#include <cstring>

#include "conformance/seam/levels.h"

// Batch-invariant kernels: a row's result does not depend on other rows.
namespace weft::conformance::checks::rows_stand_alone {
namespace {

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

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto always = [&](const Ask& ask) {
    run_with_level(run, ask, WEFT_DETERMINISM_BATCH,
                   [&](const Ask& it) { return alone_and_together(rig, it); });
  };
  for (const DType t : {DType::f32, DType::f64}) {
    const auto x = noise({13, 37}, 1, t), w = noise({37, 29}, 2, t), row = noise({37}, 3, t);
    const Ask all[] = {{"matmul", {x, w}},
                       {"sum", {x}, {{"axes", Shape{1}}}},
                       {"max", {x}, {{"axes", Shape{1}}}},
                       {"add", {x, row}},
                       {"exp", {x}},
                       {"softmax", {x}},
                       {"layer_norm", {x, row, row}},
                       {"rms_norm", {x, row}}};
    for (const Ask& ask : all) always(ask);
  }
  // Sums so long that kernels share them out where there are few.
  for (const DType t : {DType::f32, DType::bf16}) {
    const auto x = noise({6, 2048}, 4, t), w = noise({24, 2048}, 5, t), keys = noise({6, 300, 16}, 6, t),
               queries = noise({6, 2, 16}, 7, t);
    always({"linear", {x, w}});
    always({"matmul", {x, w}, {{"transpose_b", int64_t{1}}}});
    always({"attention", {queries, keys, keys}});
    always({"rms_norm", {x, noise({2048}, 8, t)}});
    always({"rms_norm", {noise({6, 4, 64}, 9, t), noise({64}, 10, t)}});
  }
}

}  // namespace

extern const Check check = {
    "rows_stand_alone", "a kernel that promises batch invariance gives a row the same bits among any others",
    run};

}  // namespace weft::conformance::checks::rows_stand_alone

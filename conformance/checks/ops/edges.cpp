#include <algorithm>

#include "conformance/check.h"
#include "conformance/edges.h"
#include "conformance/run.h"
#include "conformance/seam/candidates.h"

// Cases that are made, not written: conformance/edges.h.
namespace weft::conformance {
namespace {

// By the kernels that were not chosen, and say yes: the case is made and its answer known already.
std::string wrong_elsewhere(CheckRun& run, Rig& rig, const PreparedCase& c, const Outcome& chosen) {
  const Ask ask = ask_of(c);
  for (const auto& plan : candidates_of(rig, ask).plans) {
    const std::string id = plan->kernel.id;
    if (std::ranges::any_of(chosen.ledger, [&](auto& row) { return row.kernel == id; })) continue;
    run.covered.insert(id);
    const auto got = value_or_raise(rig.launch(*plan, ask)).outputs;
    for (size_t k = 0; k < got.size(); ++k) {
      const auto& t = got[k].type;
      const Array values = decode(t.dtype, Dims(t.shape.begin(), t.shape.end()), got[k].bytes);
      if (const auto v = judge(values, c.right[k]); !v.ok)
        return fmt::format("{}: output {}: {}", id, c.op.outputs[k], v.reason);
    }
  }
  return "";
}

Found one(CheckRun& run, Rig& rig, const PreparedCase& c) {
  const auto ran = run_op(c.op, c.attrs, c.inputs, run.backend());
  if (!ran.refused.empty()) return judged_refusal(c, run.backend(), ran.refused);
  for (const auto& row : ran.ledger) run.covered.insert(row.kernel);
  for (size_t k = 0; k < c.right.size(); ++k)
    if (const auto v = judge(ran.outputs[k], c.right[k]); !v.ok)
      return Found::wrong(fmt::format("output {}: {}", c.op.outputs[k], v.reason));
  return Found::wrong(wrong_elsewhere(run, rig, c, ran));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  size_t done = 0;
  for (const auto* op : ir::all_ops()) {
    run.at(done++, ir::all_ops().size());
    if (!run.wants(op->name)) continue;
    each_case(
        *op, edge_cases(*op), [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) { run.run(c.label, [&] { return one(run, rig, c); }); });
  }
}

}  // namespace

extern const Check edges_check = {
    "edges", "sizes at which vectors, blocks and counters end give right answers too", run, true};

}  // namespace weft::conformance

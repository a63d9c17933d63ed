#include "conformance/judged.h"

#include <algorithm>

#include "conformance/run.h"

namespace weft::conformance {

// Also by the other kernels that accept it: the case and its answer exist already.
static std::string wrong_elsewhere(CheckRun& run, Rig& rig, const PreparedCase& c, const Outcome& chosen) {
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

Found judged_by_all(CheckRun& run, Rig& rig, const PreparedCase& c) {
  const auto ran = run_op(c.op, c.attrs, c.inputs, run.backend());
  if (!ran.refused.empty()) return judged_refusal(c, run.backend(), ran.refused);
  for (const auto& row : ran.ledger) run.covered.insert(row.kernel);
  for (size_t k = 0; k < c.right.size(); ++k)
    if (const auto v = judge(ran.outputs[k], c.right[k]); !v.ok)
      return Found::wrong(fmt::format("output {}: {}", c.op.outputs[k], v.reason));
  return Found::wrong(wrong_elsewhere(run, rig, c, ran));
}

}  // namespace weft::conformance

#include "conformance/edges.h"
#include "conformance/check.h"
#include "conformance/judged.h"

// Generated cases: conformance/edges.h.
namespace weft::conformance::checks::edges {
namespace {

void run(CheckRun& run) {
  Rig rig(run.backend());
  size_t done = 0;
  for (const auto* op : ir::all_ops()) {
    run.at(done++, ir::all_ops().size());
    if (!run.wants(op->name)) continue;
    each_case(
        *op, edge_cases(*op), [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) { run.run(c.label, [&] { return judged_by_all(run, rig, c); }); });
  }
}

}  // namespace

extern const Check check = {"edges", "sizes at which vectors, blocks and counters end give right answers too",
                            run, true};

}  // namespace weft::conformance::checks::edges

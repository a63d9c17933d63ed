#include "conformance/check.h"
#include "conformance/seam/guarded.h"
#include "conformance/seam/usual.h"

// In host memory every operand ends at an inaccessible page; elsewhere it has a margin that must not change.
namespace weft::conformance::checks::stays_within_bounds {
namespace {

Found between_pages(Rig& rig, const Ask& ask, bool at_end) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto said = in_children(1, [&](size_t) { launch_between_pages(rig, *plan, ask, at_end); })[0];
  return Found::wrong(said.empty() ? ""
                                   : fmt::format("{} {} its operands: {}", plan->kernel.id,
                                                 at_end ? "behind" : "before", said));
}

Found among_others(Rig& rig, const Ask& ask) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  return Found::wrong(launch_among_others(rig, *plan, ask));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls()) {
    if (!rig.device.host_memory()) {
      run.run(title(ask) + " among others", [&] { return among_others(rig, ask); });
      continue;
    }
    for (const bool at_end : {true, false})
      run.run(title(ask) + (at_end ? " before a page" : " behind a page"),
              [&] { return between_pages(rig, ask, at_end); });
  }
}

}  // namespace

extern const Check check = {"stays_within_bounds", "a launch touches nothing beside its operands", run};

}  // namespace weft::conformance::checks::stays_within_bounds

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::follows_its_data {
namespace {

Found same_plan_other_data(Rig& rig, const Ask& ask) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  Ask other = ask;
  other.inputs[0] = counting(ask.inputs[0].type.shape, 5, ask.inputs[0].type.dtype);
  auto found = differs(rig, *plan, ask, "first data");
  if (found.empty()) found = differs(rig, *plan, other, "second data");
  return Found::wrong(found);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls()) run.run(title(ask), [&] { return same_plan_other_data(rig, ask); });
}

}  // namespace

extern const Check check = {"follows_its_data", "a plan gives other answers for other data", run};

}  // namespace weft::conformance::checks::follows_its_data

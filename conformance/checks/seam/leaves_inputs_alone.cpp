#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::leaves_inputs_alone {
namespace {

Found untouched(Rig& rig, const Ask& ask) {
  const auto run = value_or_raise(rig.run(ask));
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    if (run.inputs_after[i].bytes != ask.inputs[i].bytes)
      return Found::wrong(fmt::format("{} changed its operand {}", ask.op, i));
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls()) run.run(title(ask), [&] { return untouched(rig, ask); });
}

}  // namespace

extern const Check check = {"leaves_inputs_alone", "operands hold after a launch what they held before", run};

}  // namespace weft::conformance::checks::leaves_inputs_alone

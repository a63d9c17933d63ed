#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::writes_every_element {
namespace {

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (Ask ask : usual_calls())
    for (const double before : {std::numeric_limits<double>::quiet_NaN(), 0.0}) {
      ask.before = {before};
      run.run(fmt::format("{} onto {}", title(ask), before),
              [&] { return Found::wrong(differs(rig, ask, "poisoned output")); });
    }
}

}  // namespace

extern const Check check = {"writes_every_element",
                            "an output that was poisoned before holds the answer after", run};

}  // namespace weft::conformance::checks::writes_every_element

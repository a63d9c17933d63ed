#include <cstdlib>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::waits_when_asked {
namespace {

// An operand is freed as soon as synchronize has returned.
Found free_after(Rig& rig) {
  const Ask ask = {"add", {counting({64}), counting({64})}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  auto placed = value_or_raise(rig.place(*plan, ask));
  Status s = rig.enqueue(*plan, placed);
  if (s.ok()) s = rig.queue->synchronize();
  if (!s.ok()) return Found::wrong(s.message());
  placed.in.clear(), placed.workspace.reset();
  s = rig.queue->synchronize();
  if (!s.ok()) return Found::wrong(s.message());
  const auto got = numbers(value_or_raise(rig.download(*placed.results[0])));
  return Found::wrong(got[1] == 4 ? "" : fmt::format("2 + 2 is {} after the wait", got[1]));
}

void run(CheckRun& run) {
  setenv("WEFT_FAR_DELAY_US", "5000", 1);  // so the queue of the plug-in `far` can't be done yet
  Rig rig(run.backend());
  unsetenv("WEFT_FAR_DELAY_US");
  run.run("free after synchronize", [&] { return free_after(rig); });
}

}  // namespace

extern const Check check = {"waits_when_asked", "synchronize returns when all that was enqueued has passed",
                            run};

}  // namespace weft::conformance::checks::waits_when_asked

#include <sys/wait.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::reads_no_handle {
namespace {

// In a child process, since reading such a handle crashes. Launch only: worker threads don't exist in the
// child.
Found launch_in_child(Rig& rig) {
  const Ask ask = {"add", {counting({4}), counting({4})}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto placed = value_or_raise(rig.place(*plan, ask));
  raise_if(rig.queue->synchronize());
  const pid_t child = fork();
  if (child == 0) _exit(rig.enqueue(*plan, placed).ok() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Found::wrong(WIFSIGNALED(status) ? fmt::format("launch died of signal {}", WTERMSIG(status))
                                          : "launch failed");
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  run.run("launch", [&] {
    if (rig.device.host_memory()) return Found::skipped("it may read: the handle is an address");
    if (rig.device.capability().dialect[0]) return Found::skipped("a driver's threads do not survive fork");
    return launch_in_child(rig);
  });
}

}  // namespace

extern const Check check = {
    "reads_no_handle", "an opaque handle is no address: enqueuing a launch reads nothing behind it", run};

}  // namespace weft::conformance::checks::reads_no_handle

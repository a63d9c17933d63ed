#include "conformance/check.h"
#include "conformance/grown.h"
#include "conformance/prepared.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/modes.h"
#include "conformance/seam/threads.h"
#include "conformance/seam/usual.h"

// Rounding and denormal modes of the processor, on the launching thread and on those of parallel_for, are
// unchanged after every kernel. (Every case of every check tests its own thread.)
namespace weft::conformance::checks::leaves_modes_alone {
namespace {

std::string changed_by(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  (void)value_or_raise(rig.launch(plan, ask));
  if (auto words = changed_modes(); !words.empty()) {
    restore_modes();
    return "of the thread that launches: " + words;
  }
  auto words = changed_modes_of_workers();
  return words.empty() ? "" : "of a thread of parallel_for: " + words;
}

Found of_op(Rig& rig, const CaseFile& file, uint64_t seed, size_t calls) {
  Threads threads;
  if (thread_count() < 4) threads.use(4);
  Random random(seed * 0x9e3779b97f4a7c15 + std::hash<std::string_view>()(file.op));
  if (auto words = changed_modes_of_workers(); !words.empty())
    return Found::wrong("before it began, of a thread of parallel_for: " + words);
  size_t asked = 0;
  for (const Ask& ask : drawn_asks(op_of(file), file.cases(), calls, random))
    for (const auto& plan : candidates_of(rig, ask).plans) {
      ++asked;
      if (auto words = changed_by(rig, *plan, ask); !words.empty())
        return Found::wrong(
            fmt::format("{} for {} changed the modes {}", plan->kernel.id, title(ask), words));
    }
  return asked ? Found() : Found::refused("no kernel takes any of its calls");
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const size_t calls = rig.device.capability().dialect[0] ? 1 : 8;
  for (const auto& file : case_files())
    if (run.wants(file.op)) run.run(file.op, [&] { return of_op(rig, file, run.options().seed, calls); });
}

}  // namespace

extern const Check check = {"leaves_modes_alone",
                            "a launch leaves the processor's rounding and denormal modes as they were", run};

}  // namespace weft::conformance::checks::leaves_modes_alone

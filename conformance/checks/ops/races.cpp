#include "conformance/check.h"
#include "conformance/seam/threads.h"
#include "conformance/sizes/exact.h"

// Many threads compute one answer. A kernel without promised determinism may add in any order, so the numbers
// give the same bits in every order: any difference was written twice or read too early.
namespace weft::conformance::checks::races {
namespace {

constexpr int kThreads = 8, kLaunches = 4;

Found on_many_threads(CheckRun& run, Rig& rig, const DrawnCall& call, Random& random) {
  const Ask ask = exact_ask(call, random);
  const auto candidates = candidates_of(rig, ask);
  if (candidates.plans.empty()) return Found::refused(candidates.refusals);
  const auto want = value_or_raise(Rig("reference").run(ask));
  Threads threads;
  threads.use(kThreads);
  for (const auto& plan : candidates.plans) {
    run.covered.insert(plan->kernel.id);
    const auto placed = value_or_raise(rig.place(*plan, ask));
    const bool again = plan->call->desc().updates.empty();  // the operands are still there
    for (int n = 1; n <= (again ? kLaunches : 1); ++n) {
      raise_if(rig.enqueue(*plan, placed));
      raise_if(rig.queue->synchronize());
      const auto got = value_or_raise(rig.read(placed));
      for (size_t k = 0; k < got.outputs.size(); ++k)
        if (auto words = other_number(*call.op, got.outputs[k], want.outputs[k]); !words.empty())
          return Found::wrong(fmt::format("{} on {} threads, launch {}: output {}: {}", plan->kernel.id,
                                          kThreads, n, call.op->outputs[k], words));
    }
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const LargeCalls which =
      run.options().full ? LargeCalls{200, 5, 100'000, 4'000'000} : LargeCalls{6, 0.15, 100'000, 1'000'000};
  each_large_call(run, rig.device.capability().dtypes, which,
                  [&](const std::string& label, const DrawnCall& call, Random& random) {
                    run.run(label, [&] { return on_many_threads(run, rig, call, random); });
                  });
}

}  // namespace

extern const Check check = {"races", "many threads at one answer give it again and again", run, true};

}  // namespace weft::conformance::checks::races

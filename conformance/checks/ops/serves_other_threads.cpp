#include <future>

#include "conformance/check.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "conformance/seam/usual.h"

// Every case on a new thread that did not open the device and never used it; and plans that one thread makes,
// another launches, and a third ends.
namespace weft::conformance::checks::serves_other_threads {
namespace {

Found one(CheckRun& run, const PreparedCase& c) {
  const auto ran = run_op(c.op, c.attrs, c.inputs, run.backend());
  if (!ran.refused.empty()) return judged_refusal(c, run.backend(), ran.refused);
  for (size_t k = 0; k < c.right.size(); ++k)
    if (const auto v = judge(ran.outputs[k], c.right[k]); !v.ok)
      return Found::wrong(fmt::format("output {}: {}", c.op.outputs[k], v.reason));
  return {};
}

template <class F>
auto on_another_thread(F f) {
  return std::async(std::launch::async, f).get();
}

Found handed_on(const std::string& backend, const Ask& ask) {
  Rig rig(backend);
  auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  auto found = on_another_thread([&] { return differs(rig, *plan, ask, "launched by another thread"); });
  if (!found.empty()) return Found::wrong(found);
  auto made = on_another_thread([&] { return value_or_raise(rig.plan(value_or_raise(describe(ask)))); });
  on_another_thread([&] { plan.reset(); });
  return Found::wrong(differs(rig, *made, ask, "a plan that another thread made"));
}

void run(CheckRun& run) {
  Rig opened(run.backend());  // by this thread
  for (const Ask& ask : usual_calls())
    run.run("handed on, " + title(ask), [&] { return handed_on(run.backend(), ask); });
  const bool few = opened.device.capability().dialect[0] && !run.options().full;
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    on_another_thread([&] {
      size_t n = 0;
      each_case(
          op_of(file), file.cases(),
          [&](const std::string& label) { return run.wants(label) && (!few || n++ % 16 == 0); },
          [&](const PreparedCase& c) { run.run(c.label, [&] { return one(run, c); }); });
    });
  }
}

}  // namespace

extern const Check check = {"serves_other_threads",
                            "threads that did not open the device get the same answers from it", run};

}  // namespace weft::conformance::checks::serves_other_threads

#include "conformance/seam/candidates.h"

#include <algorithm>

#include "conformance/asks.h"

#include "conformance/check.h"

// Every kernel that accepts a call, not only the chosen one, on its first call and on later ones.
namespace weft::conformance::checks::candidates {
namespace {

// Three calls, with other memory in use each time: each is right, and if the kernel promises it the bits are
// the same.
std::string three_calls(Rig& rig, seam::PreparedKernel& plan, const PreparedCase& c, const Ask& ask) {
  std::vector<std::unique_ptr<Rig::Operand>> others;
  std::vector<HostTensor> first;
  for (int n = 1; n <= 3; ++n) {
    others.push_back(value_or_raise(rig.upload(counting({37 * n}))));  // done when the launch is
    auto ran = value_or_raise(rig.launch(plan, ask));
    if (auto words = judged(c, ran); !words.empty()) return fmt::format("call {}: {}", n, words);
    if (n == 1) first = std::move(ran.outputs);
    for (size_t k = 0; n > 1 && k < first.size(); ++k)
      if (plan.plan.determinism >= WEFT_DETERMINISM_RUN && ran.outputs[k].bytes != first[k].bytes)
        return fmt::format("call {}: output {} has other bits than at the first call", n, c.op.outputs[k]);
  }
  return "";
}

Found each_candidate(CheckRun& run, Rig& rig, const PreparedCase& c, const Ask& ask) {
  auto candidates = candidates_of(rig, ask);
  if (candidates.plans.empty()) return Found::refused(candidates.refusals);
  for (auto& plan : candidates.plans) {
    run.covered.insert(plan->kernel.id);
    if (auto words = three_calls(rig, *plan, c, ask); !words.empty())
      return Found::wrong(fmt::format("{}, {}", plan->kernel.id, words));
    if (plan->plan.determinism >= WEFT_DETERMINISM_RUN || !gives_equal_bits(rig, ask, plan)) continue;
    if (auto words = three_calls(rig, *plan, c, ask); !words.empty())
      return Found::wrong(fmt::format("{}, asked for equal bits, {}", plan->kernel.id, words));
  }
  return {};
}

// Masks that hide nothing, before other operands: the answer is the one without them.
uint64_t idle_masks(const PreparedCase& c) {
  uint64_t idle = 0;
  for (auto i = static_cast<size_t>(c.op.n_inputs - c.op.n_optional); i + 1 < c.inputs.size(); ++i)
    if (const Array& a = c.inputs[i]; c.op.inputs[i] == std::string_view("mask") &&
                                      a.dtype == DType::boolean &&
                                      std::ranges::all_of(a.v, [](Real x) { return x == 1; }))
      idle |= uint64_t{1} << i;
  return idle;
}

void run_case(CheckRun& run, Rig& rig, const PreparedCase& c) {
  Ask ask = ask_of(c);
  run.run(c.label, [&] { return each_candidate(run, rig, c, ask); });
  ask.absent = idle_masks(c);
  const std::string without = c.label + " without the mask";
  if (ask.absent && run.wants(without)) run.run(without, [&] { return each_candidate(run, rig, c, ask); });
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const auto& file : case_files())
    if (run.wants(file.op))
      each_case(
          op_of(file), file.cases(), [&](const std::string& label) { return run.wants(label); },
          [&](const PreparedCase& c) { run_case(run, rig, c); });
}

}  // namespace

extern const Check check = {"candidates", "each kernel that accepts a call runs it rightly, again and again",
                            run};

}  // namespace weft::conformance::checks::candidates

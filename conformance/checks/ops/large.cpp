#include "conformance/check.h"
#include "conformance/sizes/exact.h"

// Tensors of up to millions of elements, drawn anew in each run, by each kernel that takes them.
namespace weft::conformance {
namespace {

std::string wrong_by(Rig& rig, seam::Plan& plan, const Ask& ask, uint64_t offset, const Rig::Run& want) {
  const auto& op = *ir::find_op(ask.op);
  const auto got = value_or_raise(rig.launch(plan, ask, offset));
  for (size_t k = 0; k < got.outputs.size(); ++k)
    if (auto words = other_number(op, got.outputs[k], want.outputs[k]); !words.empty())
      return fmt::format("output {}: {}", op.outputs[k], words);
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    if (got.inputs_after[i].bytes != want.inputs_after[i].bytes)
      return fmt::format("operand {} was changed", i);
  return "";
}

Found as_reference(CheckRun& run, Rig& rig, const DrawnCall& call, Random& random) {
  const Ask ask = exact_ask(call, random);
  const auto candidates = candidates_of(rig, ask);
  if (candidates.plans.empty()) return Found::refused(candidates.refusals);
  const auto want = value_or_raise(Rig("reference").run(ask));
  const uint64_t step = std::max<uint64_t>(64, rig.device.capability().offset_alignment);
  for (const auto& plan : candidates.plans) {
    run.covered.insert(plan->kernel.id);
    const uint64_t offset = step * (random.bits() % 3);
    if (const auto words = wrong_by(rig, *plan, ask, offset, want); !words.empty())
      return Found::wrong(fmt::format("{}, operands at byte {}: {}", plan->kernel.id, offset, words));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const LargeCalls which =
      run.options().full ? LargeCalls{1000, 10, 1000, 30'000'000} : LargeCalls{60, 0.3, 1000, 2'500'000};
  each_large_call(run, rig.device.capability().dtypes, which,
                  [&](const std::string& label, const DrawnCall& call, Random& random) {
                    run.run(label, [&] { return as_reference(run, rig, call, random); });
                  });
}

}  // namespace

extern const Check large_check = {
    "large", "drawn tensors of millions of elements give the bits that reference gives", run, true};

}  // namespace weft::conformance

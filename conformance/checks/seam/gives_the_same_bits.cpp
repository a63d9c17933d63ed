#include "conformance/check.h"
#include "conformance/numbers.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::gives_the_same_bits {
namespace {

// Numbers whose sums depend on their order.
HostTensor noise(const HostTensor& like, uint64_t seed) {
  Random random(seed);
  std::vector<double> v(like.bytes.size() / byte_size(like.type.dtype));
  for (double& x : v) x = random.normal();
  return array(like.type.shape, v, like.type.dtype);
}

Found calls(Rig& rig, Ask ask) {
  for (size_t i = 0; i < ask.inputs.size(); ++i)
    if (ask.inputs[i].type.dtype == DType::f32) ask.inputs[i] = noise(ask.inputs[i], 3 + i);
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (plan->plan.determinism < WEFT_DETERMINISM_RUN)
    return Found::skipped("its kernel promises no equal bits");
  const auto first = value_or_raise(rig.launch(*plan, ask));
  std::vector<std::unique_ptr<Rig::Operand>> others;  // so the memory in use changes from call to call
  for (int n = 2; n <= 5; ++n) {
    others.push_back(value_or_raise(rig.upload(counting({37 * n}))));
    const auto again = value_or_raise(rig.launch(*plan, ask));
    for (size_t k = 0; k < first.outputs.size(); ++k)
      if (first.outputs[k].bytes != again.outputs[k].bytes)
        return Found::wrong(fmt::format("call {} of {} gives other bits than the first", n, ask.op));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls()) run.run(title(ask), [&] { return calls(rig, ask); });
  const Ask wide = {"sum", {counting({3, 1000})}, {{"axes", Shape{1}}}};
  run.run(title(wide), [&] { return calls(rig, wide); });
}

}  // namespace

extern const Check check = {"gives_the_same_bits",
                            "the same call gives the same bits each time, whatever ran between", run};

}  // namespace weft::conformance::checks::gives_the_same_bits

#include "conformance/seam/usual.h"

namespace weft::conformance::checks::gives_the_same_bits {
namespace {

Found compared(const Ask& ask, const char* which, const Rig::Run& first, const Rig::Run& other) {
  for (size_t k = 0; k < first.outputs.size(); ++k)
    if (first.outputs[k].bytes != other.outputs[k].bytes)
      return Found::wrong(fmt::format("{} of {} gives other bits than the first", which, ask.op));
  return {};
}

Found calls(Rig& rig, const Ask& ask) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (plan->plan.determinism < WEFT_DETERMINISM_RUN)
    return Found::skipped(fmt::format("{} promises no equal bits", plan->kernel.id));
  const auto first = value_or_raise(rig.launch(*plan, ask));
  std::vector<std::unique_ptr<Rig::Operand>> others;  // so the memory in use changes from call to call
  for (int n = 2; n <= 5; ++n) {
    others.push_back(value_or_raise(rig.upload(counting({37 * n}))));
    if (auto found = compared(ask, "a later call", first, value_or_raise(rig.launch(*plan, ask)));
        found.state != Found::State::passed)
      return found;
  }
  // Backends may launch calls together that do not need each other.
  std::vector<Rig::Placed> beside;
  for (int n = 0; n < 3; ++n) beside.push_back(value_or_raise(rig.place(*plan, ask)));
  for (auto& placed : beside) raise_if(rig.enqueue(*plan, placed));
  for (auto& placed : beside)
    if (auto found = compared(ask, "a call beside others", first, value_or_raise(rig.read(placed)));
        found.state != Found::State::passed)
      return found;
  return {};
}

// Sums that are made by many, whose order could be the one in which they come.
std::vector<Ask> long_sums() {
  const DType half = DType::bf16;
  // Rows above 64, and more than two tiles of 128 keys.
  const auto q = noise({1, 256, 72}, 11, half), k = noise({1, 260, 72}, 12, half),
             lse = array({1, 256}, std::vector<double>(256, 8));
  return {{"sum", {noise({3, 1000}, 3)}, {{"axes", Shape{1}}}},
          {"linear", {noise({1, 2048}, 4), noise({1024, 2048}, 5)}},
          {"linear", {noise({4, 512}, 6, half), noise({1024, 512}, 7, half)}},
          {"matmul", {noise({33, 2048}, 8, half), noise({2048, 24}, 9, half)}},
          {"attention_grad", {q, k, noise({1, 260, 72}, 13, half), noise({1, 256, 72}, 14, half), lse, q}}};
}

// Backends may launch a call together with the one that makes its operand.
Found behind(Rig& rig, const Ask& maker, const Ask& ask) {
  const auto first = value_or_raise(rig.plan(value_or_raise(describe(maker)))),
             plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (plan->plan.determinism < WEFT_DETERMINISM_RUN)
    return Found::skipped(fmt::format("{} promises no equal bits", plan->kernel.id));
  auto made = value_or_raise(rig.place(*first, maker)), placed = value_or_raise(rig.place(*plan, ask));
  placed.c_in[0] = made.c_out[0];
  raise_if(rig.enqueue(*first, made));
  raise_if(rig.enqueue(*plan, placed));
  const auto together = value_or_raise(rig.read(placed));
  Ask alone = ask;
  alone.inputs[0] = value_or_raise(rig.read(made)).outputs[0];
  return compared(ask, "a call behind the one that makes its operand",
                  value_or_raise(rig.launch(*plan, alone)), together);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const auto always = [&](const Ask& ask) {
    run_with_level(run, ask, WEFT_DETERMINISM_RUN, [&](const Ask& it) { return calls(rig, it); });
  };
  for (Ask ask : usual_calls()) {
    for (size_t i = 0; i < ask.inputs.size(); ++i)
      if (const auto& type = ask.inputs[i].type; type.dtype == DType::f32)
        ask.inputs[i] = noise(type.shape, 3 + i);
    always(ask);
  }
  for (const Ask& ask : long_sums()) always(ask);
  for (const int64_t rows : {1, 2}) {
    const auto x = noise({rows, 2048}, 15, DType::bf16);
    const Ask norm = {"rms_norm", {x, noise({2048}, 16, DType::bf16)}},
              product = {.op = "linear",
                         .inputs = {x, noise({128, 2048}, 17, DType::bf16)},
                         .determinism = WEFT_DETERMINISM_RUN};
    run.run(title(product) + ", asked for behind rms_norm", [&] { return behind(rig, norm, product); });
  }
}

}  // namespace

extern const Check check = {"gives_the_same_bits",
                            "the same call gives the same bits each time, whatever ran between", run};

}  // namespace weft::conformance::checks::gives_the_same_bits

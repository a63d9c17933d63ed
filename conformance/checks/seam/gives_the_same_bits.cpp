#include <algorithm>
#include <span>

#include "conformance/seam/levels.h"

namespace weft::conformance::checks::gives_the_same_bits {
namespace {

Found compared(const seam::PreparedKernel& plan, const char* which, const Rig::Run& alone,
               const Rig::Run& other) {
  for (size_t k = 0; k < alone.outputs.size(); ++k) {
    if (alone.outputs[k].bytes == other.outputs[k].bytes) continue;
    const auto right = numbers(alone.outputs[k]), here = numbers(other.outputs[k]);
    const size_t i = static_cast<size_t>(std::ranges::mismatch(right, here).in1 - right.begin());
    const std::string element = i == right.size()
                                    ? "the sign of a zero differs"
                                    : fmt::format("element {} is {}, alone {}", i, here[i], right[i]);
    return Found::wrong(fmt::format("{}: {} gives other bits than the call alone: output {}, {}",
                                    plan.kernel.id, which, k, element));
  }
  return {};
}

bool promises_equal_bits(const seam::PreparedKernel& plan) {
  return plan.plan.determinism >= WEFT_DETERMINISM_RUN;
}

struct Placed {
  seam::PreparedKernel& plan;
  Rig::Placed operands;
};
Placed placed(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  return {plan, value_or_raise(rig.place(plan, ask))};
}
// One behind the other, without waiting between them: backends may launch them together. The operands are
// needed until the queue has passed, also after an error.
void launch_all(Rig& rig, std::span<const Placed> calls) {
  Status status;
  for (const Placed& call : calls)
    if (status.ok()) status = rig.enqueue(call.plan, call.operands);
  const Status later = rig.queue->synchronize();
  raise_if(status.ok() ? later : status);
}

Found calls(Rig& rig, const Ask& ask) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  if (!promises_equal_bits(*plan))
    return Found::skipped(fmt::format("{} promises no equal bits", plan->kernel.id));
  const auto first = value_or_raise(rig.launch(*plan, ask));
  std::vector<std::unique_ptr<Rig::Operand>> others;  // so the memory in use changes from call to call
  for (int n = 2; n <= 5; ++n) {
    others.push_back(value_or_raise(rig.upload(counting({37 * n}))));
    if (auto found = compared(*plan, "a later call", first, value_or_raise(rig.launch(*plan, ask)));
        found.state != Found::State::passed)
      return found;
  }
  std::vector<Placed> beside;
  for (int n = 0; n < 3; ++n) beside.push_back(placed(rig, *plan, ask));
  launch_all(rig, beside);
  for (const Placed& call : beside)
    if (auto found = compared(*plan, "a call beside others", first, value_or_raise(rig.read(call.operands)));
        found.state != Found::State::passed)
      return found;
  return {};
}

// A call and the one that makes its first operand, each compared with itself alone as far as it promises.
Found in_a_row(Rig& rig, const Ask& maker, const Ask& reader) {
  const auto second = value_or_raise(rig.plan(value_or_raise(describe(reader)))),
             first = value_or_raise(rig.plan(value_or_raise(describe(maker))));
  std::vector<Placed> both;
  both.push_back(placed(rig, *first, maker)), both.push_back(placed(rig, *second, reader));
  both[1].operands.c_in[0] = both[0].operands.c_out[0];
  launch_all(rig, both);
  const auto made = value_or_raise(rig.read(both[0].operands));
  if (promises_equal_bits(*first))
    if (auto found = compared(*first, "the call before", value_or_raise(rig.launch(*first, maker)), made);
        found.state != Found::State::passed)
      return found;
  if (!promises_equal_bits(*second)) return {};
  Ask alone = reader;
  alone.inputs[0] = made.outputs[0];
  return compared(*second, "the call behind", value_or_raise(rig.launch(*second, alone)),
                  value_or_raise(rig.read(both[1].operands)));
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
    Ask norm = {"rms_norm", {x, noise({2048}, 16, DType::bf16)}},
        product = {"linear", {x, noise({128, 2048}, 17, DType::bf16)}};
    product.determinism = WEFT_DETERMINISM_RUN;
    run.run(title(product) + ", asked for behind rms_norm", [&] { return in_a_row(rig, norm, product); });
    std::swap(norm.determinism, product.determinism);
    run.run(title(product) + " behind rms_norm, asked for", [&] { return in_a_row(rig, norm, product); });
  }
}

}  // namespace

extern const Check check = {"gives_the_same_bits",
                            "the same call gives the same bits each time, whatever ran between", run};

}  // namespace weft::conformance::checks::gives_the_same_bits

#include <algorithm>
#include <cmath>
#include <span>

#include "conformance/seam/levels.h"
#include "seam/sequence.h"

namespace weft::conformance::checks::gives_the_same_bits {
namespace {

Found compared(const seam::PreparedKernel& plan, const char* which, const Rig::Run& alone,
               const Rig::Run& other) {
  for (size_t k = 0; k < alone.outputs.size(); ++k) {
    if (alone.outputs[k].bytes == other.outputs[k].bytes) continue;
    const auto right = numbers(alone.outputs[k]), here = numbers(other.outputs[k]);
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const size_t i = static_cast<size_t>(std::ranges::mismatch(right, here, same).in1 - right.begin());
    const std::string element = i == right.size()
                                    ? "zeros of other signs, or NaNs of other bits"
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

// As launch_all, in a recorded sequence; unsupported where a call can't be recorded.
Status run_recorded(Rig& rig, std::span<const Placed> calls) {
  struct Step {
    uint32_t after;
    weft_launch launch;
    weft_sequence_step c;
  };
  std::vector<Step> steps(calls.size());
  std::vector<const weft_sequence_step*> pointers;
  WEFT_CHECK(rig.queue->synchronize());  // the uploads, whose memory may go after a refusal
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& [plan, operands] = calls[i];
    if (!(plan.kernel.flags & WEFT_KERNEL_RECORDABLE))
      return fail(Code::unsupported, "{} is not recordable", plan.kernel.id);
    Step& one = steps[i];
    one.after = i == 0 ? 0 : static_cast<uint32_t>(i - 1);
    one.launch = {.size = sizeof one.launch,
                  .reserved = 0,
                  .plan = &plan.plan,
                  .device = rig.device.c(),
                  .queue = nullptr,
                  .inputs = operands.c_in.data(),
                  .outputs = operands.c_out.data(),
                  .workspace = operands.workspace ? &operands.workspace->c : nullptr};
    one.c = {.size = sizeof one.c,
             .lane = 0,
             .launch = &one.launch,
             .copy = nullptr,
             .after = &one.after,
             .n_after = i == 0 ? 0u : 1u,
             .reserved = 0};
    pointers.push_back(&one.c);
  }
  uint32_t refused = 0;
  WEFT_TRY(const auto sequence, seam::Sequence::record(rig.device, pointers, 0, refused));
  const Status ran = sequence->run(*rig.queue, {});
  const Status later = rig.queue->synchronize();
  return ran.ok() ? later : ran;
}

// Each call makes the first operand of the next one, and is compared with itself alone if it promises equal
// bits.
Found in_a_row(Rig& rig, std::vector<Ask> asks, bool recorded) {
  std::vector<seam::PreparedPtr> plans;
  std::vector<Placed> calls;
  for (const Ask& ask : asks) plans.push_back(value_or_raise(rig.plan(value_or_raise(describe(ask)))));
  for (size_t i = 0; i < asks.size(); ++i) {
    calls.push_back(placed(rig, *plans[i], asks[i]));
    if (i > 0) calls[i].operands.c_in[0] = calls[i - 1].operands.c_out[0];
  }
  if (recorded)
    raise_if(run_recorded(rig, calls));
  else
    launch_all(rig, calls);
  for (size_t i = 0; i < asks.size(); ++i) {
    auto made = value_or_raise(rig.read(calls[i].operands));
    if (promises_equal_bits(*plans[i])) {
      const auto alone = value_or_raise(rig.launch(*plans[i], asks[i]));
      if (auto found = compared(*plans[i], fmt::format("call {} in a row", i).c_str(), alone, made);
          found.state != Found::State::passed)
        return found;
    }
    if (i + 1 < asks.size()) asks[i + 1].inputs[0] = std::move(made.outputs[0]);
  }
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

// A norm of few rows and products that follow it, which backends compute together. `cuda` joins recorded
// calls from four on, of one row: another order of a norm's sum changes few numbers, so that row is long, and
// many are tried.
void behind_a_norm(CheckRun& run, Rig& rig, int64_t rows, bool norm_asks) {
  constexpr int64_t kColumns = 8192, kNarrow = 128;
  const auto half = [](IntList shape, uint64_t seed) { return noise(std::move(shape), seed, DType::bf16); };
  std::vector<Ask> calls = {{"rms_norm", {half({rows, kColumns}, 15), half({kColumns}, 16)}},
                            {"linear", {half({rows, kColumns}, 15), half({kNarrow, kColumns}, 17)}}};
  while (calls.size() < 7)
    calls.push_back({"linear", {half({rows, kNarrow}, 15), half({kNarrow, kNarrow}, 18)}});
  for (Ask& ask : calls)
    if ((ask.op == "rms_norm") == norm_asks) ask.determinism = WEFT_DETERMINISM_RUN;
  const std::string name = fmt::format("rms_norm of bf16[{}, {}] and products behind it, {} asked for", rows,
                                       kColumns, norm_asks ? "the norm" : "the products");
  run.run(name, [&] { return in_a_row(rig, calls, false); });
  run.run(name + ", recorded", [&]() -> Found {
    if (!rig.device.backend().make_sequence) return Found::skipped("it records no sequences");
    for (uint64_t n = 0; n < (norm_asks && rows == 1 ? 24 : 1); ++n) {
      calls[0].inputs[0] = half({rows, kColumns}, 100 + n);
      if (auto found = in_a_row(rig, calls, true); found.state != Found::State::passed) return found;
    }
    return {};
  });
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
  for (const int64_t rows : {1, 2})
    for (const bool norm_asks : {true, false}) behind_a_norm(run, rig, rows, norm_asks);
}

}  // namespace

extern const Check check = {"gives_the_same_bits",
                            "the same call gives the same bits each time, whatever ran between", run};

}  // namespace weft::conformance::checks::gives_the_same_bits

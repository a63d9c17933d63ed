#include <algorithm>
#include <deque>

#include "conformance/check.h"
#include "conformance/sizes/exact.h"

// Tensors of up to millions of elements, random in each run, by each kernel that accepts them.
namespace weft::conformance::checks::large {
namespace {

std::string wrong_by(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, uint64_t offset,
                     const Rig::Run& want) {
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

// Each operand of the op's first case as one axis of n elements, in f32.
std::optional<DrawnCall> flat_call(const CaseFile& file, uint64_t claimed, int64_t n) {
  const ir::OpDef& op = op_of(file);
  const Case c = file.cases().front();
  DrawnCall call{&op, DType::f32, c.inputs, value_or_raise(ir::order_attrs(op, c.attrs)), {}, 0};
  std::deque<TensorType> types;
  std::vector<const TensorType*> in;
  for (size_t i = 0; i < call.like.size(); ++i) {
    call.like[i].shape = {n};
    in.push_back(&types.emplace_back(TensorType{call.dtype_of(i), {n}}));
  }
  auto out = op.infer(ir::Types(in), call.attrs);
  const auto claims = [&](const TensorType& t) { return claimed >> static_cast<int>(t.dtype) & 1; };
  if (!out.ok() || !std::ranges::all_of(types, claims) || !std::ranges::all_of(out.value(), claims))
    return std::nullopt;
  call.results = std::move(out).value();
  ir::settle_attrs(op, ir::Types(in), call.attrs);
  return call;
}

// Beyond 2^22 elements, where a grid of 65,535 groups of 64 ends; with --full beyond 2^24, where counting in
// f32 and a grid of groups of 256 end.
void run_flat(CheckRun& run, Rig& rig) {
  const uint64_t most = rig.device.capability().max_buffer;
  const bool small = most && most < uint64_t{1} << 28;  // 2^24 numbers don't fit everywhere
  const int64_t least = int64_t{1} << (run.options().full && !small ? 24 : 22);
  for (const auto& file : case_files()) {
    const ir::OpDef& op = op_of(file);
    const std::string label = fmt::format("{} of millions", file.op);
    if (!ir::has(op.traits, ir::Trait::elementwise) || !is_comparable(op) || !run.wants(label)) continue;
    Random random = random_for(run.options().seed, op, 0);
    const int64_t n = log_uniform(random, least + 1, least + least / 8);
    if (const auto call = flat_call(file, rig.device.capability().dtypes, n))
      run.run(label, [&] { return as_reference(run, rig, *call, random); });
  }
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const LargeCalls which =
      run.options().full ? LargeCalls{1000, 10, 1000, 30'000'000} : LargeCalls{60, 0.2, 1000, 2'500'000};
  each_large_call(run, rig.device.capability().dtypes, which,
                  [&](const std::string& label, const DrawnCall& call, Random& random) {
                    run.run(label, [&] { return as_reference(run, rig, call, random); });
                  });
  run_flat(run, rig);
}

}  // namespace

extern const Check check = {
    "large", "drawn tensors of millions of elements give the bits that reference gives", run, true};

}  // namespace weft::conformance::checks::large

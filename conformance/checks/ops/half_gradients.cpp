#include "conformance/half_gradients.h"

#include <cmath>
#include <set>

#include "conformance/check.h"
#include "conformance/inputs.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "weft/backends.h"

// Gradients of f16 and bf16 are computed in f32 and rounded once. Checked with operands and seeds whose
// products leave the half's range, and along axes longer than a half can count.
namespace weft::conformance::checks::half_gradients {
namespace {

/// Powers of two by which operands and seed are multiplied.
struct Scale {
  int operands, seed;
};
// f16 ends at 2^16 and 2^-24. bf16 has the range of f32, in which squares must stay.
constexpr Scale kF16[] = {{0, 0}, {12, -12}, {-12, 12}, {8, 6}, {-20, -2}, {14, 0}};
constexpr Scale kBf16[] = {{0, 0}, {56, -56}, {-56, 56}, {30, 30}, {-120, 0}, {-60, -60}};

void draw(Array& seed, int scale) {
  Random random(23);
  for (int64_t i = 0; i < count(seed.shape); ++i)
    seed.v.push_back(round_to(seed.dtype, std::ldexp(random.normal(), scale)));
}

Found judge_all(CheckRun& run, const GradientCall& call, const std::vector<Array>& operands,
                const Array& seed) {
  const auto want = bounded_half_gradients(call, operands, seed);
  std::vector<Tensor> in;
  for (const Array& a : operands) in.push_back(to_tensor(a, run.backend()));
  const auto got = conformance::gradients(call, in, to_tensor(seed, run.backend()));
  size_t k = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!call.wanted(i)) continue;
    Array g = from_tensor(got[k]);
    for (size_t e = 0; e < g.v.size() && e < want[k].error.size(); ++e)
      if (std::isinf(want[k].error[e]))
        g.v[e] = want[k].value.v[e];  // f32 itself may overflow: anything is right
    if (const auto v = judge(g, want[k]); !v.ok)
      return Found::wrong(fmt::format("gradient of {}: {}", call.op.inputs[i], v.reason));
    ++k;
  }
  return {};
}

void run_case(CheckRun& run, const ir::OpDef& op, const Case& c, DType t, Scale scale) {
  std::string label = fmt::format("{} {}", op.name, name(t));
  for (const Input& in : c.inputs) label += " " + text(std::span<const int64_t>(in.shape));
  label += fmt::format(" ({}; operands times 2^{}, seed 2^{})", c.why, scale.operands, scale.seed);
  run.run(label, [&]() -> Found {
    const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
    auto operands = make_inputs(c, t, 29);
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i].dtype == t)
        for (Real& v : operands[i].v) v = round_to(t, std::ldexp(v, scale.operands));
    const auto types = value_or_raise(infer_op(op, attrs, operands));
    if (!is_half(types[0].dtype)) return Found::skipped("its result is no half");
    Array seed{types[0].dtype, {}, {}};
    for (const Dim d : types[0].shape) seed.shape.push_back(d.value());
    draw(seed, scale.seed);
    const GradientCall call{op, attrs, [&](size_t i) { return operands[i].dtype == t; }};
    return judge_all(run, call, operands, seed);
  });
}

/// Ops whose rules count along an axis or fold it, one of each kind: the oracle is slow.
const std::set<std::string_view> kFolds = {"layer_norm", "linear", "logsumexp", "max",      "mean",
                                           "mse",        "mul",    "rms_norm",  "variance", "where"};

bool takes(const ir::OpDef& op, const Case& c, DType t) {
  if (c.no_gradient || !has_free_dtype(c) || !holds(c.dtypes, t)) return false;
  const auto inputs = make_inputs(c, t, 1);
  return !inputs[0].v.empty() && infer_op(op, value_or_raise(ir::order_attrs(op, c.attrs)), inputs).ok();
}

void run(CheckRun& run) {
  for (const auto& file : case_files()) {
    const ir::OpDef& op = op_of(file);
    if (!op.differentiable || !run.wants(file.op)) continue;
    const OpCases cases = file.cases();
    for (const DType t : {DType::f16, DType::bf16}) {
      size_t n = 0;
      bool longer = false;
      for (const Case& c : cases) {
        if (!takes(op, c, t)) continue;
        const auto scales = std::span<const Scale>(t == DType::f16 ? kF16 : kBf16);
        for (size_t s = 0; s < scales.size(); ++s)  // the first case at all scales, the others at one each
          if (n == 0 || s == n % scales.size()) run_case(run, op, c, t, scales[s]);
        if (!longer && kFolds.contains(op.name))
          if (const auto l = stretched(op, c, t == DType::f16 ? 66'000 : 1'001, 70'000))
            run_case(run, op, *l, t, scales[0]), longer = true;
        ++n;
      }
    }
  }
}

}  // namespace

extern const Check check = {
    "half_gradients", "gradients of f16 and bf16 are computed in f32 and rounded once, at any size", run};

}  // namespace weft::conformance::checks::half_gradients

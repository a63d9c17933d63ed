#include "conformance/check.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "ir/op.h"

// Zeros of both signs, their neighbours and the extreme values through every elementwise op: alone and in all
// pairs. docs/primitives.md says which ops promise the sign of a zero; those are judged by it.
namespace weft::conformance::checks::zeros {
namespace {

std::vector<Real> special(DType t) {
  const auto& f = format(t);
  std::vector<Real> all = {0, f.least(), f.least_normal(), 0.25L, 1, 1.5L, 2, f.largest};
  all.push_back(std::numeric_limits<Real>::infinity());
  for (size_t i = 0, n = all.size(); i < n; ++i) all.push_back(-all[i]);
  all.push_back(std::numeric_limits<Real>::quiet_NaN());
  return all;
}

// Operand k runs through the values in steps of n^k, which gives all combinations.
std::vector<Input> combined(const ir::OpDef& op, DType t) {
  const auto one = special(t);
  const int operands = op.n_inputs - op.n_optional;
  size_t rows = 1;
  for (int k = 0; k < operands; ++k) rows *= one.size();
  std::vector<Input> in;
  size_t step = 1;
  for (int k = 0; k < operands; ++k, step *= one.size()) {
    std::vector<Real> list;
    for (size_t i = 0; i < rows; ++i) list.push_back(one[i / step % one.size()]);
    in.push_back(values(std::move(list)));
  }
  return in;
}

void run(CheckRun& run) {
  for (const auto& file : case_files()) {
    const ir::OpDef& op = op_of(file);
    // gelu_grad multiplies infinities by a factor that underflows in every dtype but the oracle's.
    if (!ir::has(op.traits, ir::Trait::elementwise) || op.n_inputs > 2 ||
        file.op == std::string_view("gelu_grad") || !run.wants(file.op))
      continue;
    OpCases cases;
    for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
      cases.push_back({.inputs = combined(op, t), .why = "zeros and ends", .dtypes = only({t})});
    each_case(
        op, cases, [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) {
          run.run(c.label, [&] {
            const Outcome out = run_op(c.op, c.attrs, c.inputs, run.backend());
            if (!out.refused.empty()) return judged_refusal(c, run.backend(), out.refused);
            for (size_t k = 0; k < c.right.size(); ++k)
              if (const auto v = judge(out.outputs[k], c.right[k]); !v.ok) return Found::wrong(v.reason);
            return Found();
          });
        });
  }
}

}  // namespace

extern const Check check = {
    "zeros", "elementwise ops give the right zeros, with their signs, and the right results at the ends",
    run};

}  // namespace weft::conformance::checks::zeros

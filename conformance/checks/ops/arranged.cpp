#include "conformance/check.h"
#include "conformance/prepared.h"
#include "eager/apply.h"
#include "weft/backends.h"
#include "weft/jit.h"

// Operands that are results of a permute or a broadcast, eagerly and as one program: the answer is the same
// whether or not a compiler folds that into the op.
namespace weft::conformance::checks::arranged {
namespace {

/// Another way to pass an operand: a stored array, and the op that makes the operand from it.
struct Arranged {
  Array stored;
  const ir::OpDef* op = nullptr;  ///< null: nothing, it is given as it is
  std::vector<AttrValue> attrs;
};
using Arrange = Arranged (*)(Array& meant);

Array permuted(const Array& a) {
  Array y{a.dtype, {a.shape.rbegin(), a.shape.rend()}, a.v};
  for (size_t i = 0; i < a.v.size(); ++i) {
    size_t rest = i, to = 0;
    Dims at(a.shape.size());
    for (size_t d = a.shape.size(); d-- > 0;) {
      at[d] = static_cast<int64_t>(rest) % a.shape[d], rest /= static_cast<size_t>(a.shape[d]);
    }
    for (size_t d = a.shape.size(); d-- > 0;)
      to = to * static_cast<size_t>(a.shape[d]) + static_cast<size_t>(at[d]);
    y.v[to] = a.v[i];
  }
  return y;
}

Arranged by_permuting(Array& meant) {
  if (meant.shape.size() < 2) return {meant};
  const auto& op = *ir::find_op("permute");
  return {permuted(meant), &op, op.defaults()};  // the default reverses the axes
}

// The first row for all: the operand itself changes.
Arranged by_broadcasting(Array& meant) {
  if (meant.shape.empty() || meant.shape[0] < 2) return {meant};
  Array row = meant;
  const size_t n = meant.v.size() / static_cast<size_t>(meant.shape[0]);
  row.shape[0] = 1, row.v.resize(n);
  for (size_t i = 0; i < meant.v.size(); ++i) meant.v[i] = row.v[i % n];
  const auto& op = *ir::find_op("broadcast");
  return {row, &op, value_or_raise(ir::order_attrs(op, {{{"shape", to_shape(meant.shape)}}}))};
}

/// The call on the stored arrays, as tensors or as values of a trace.
std::vector<Tensor> call(const PreparedCase& c, const std::vector<Arranged>& operands,
                         const std::vector<Tensor>& stored) {
  std::vector<Tensor> in = stored, out(c.op.n_outputs);
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor* const one[] = {&stored[i]};
    if (operands[i].op) in[i] = eager::apply_one(*operands[i].op, one, operands[i].attrs);
    pointers.push_back(&in[i]);
  }
  eager::apply(c.op, pointers, c.attrs, out);
  return out;
}

std::string judged(const PreparedCase& c, const std::vector<Tensor>& got, const std::vector<Bounded>& right,
                   const char* how) {
  for (size_t k = 0; k < right.size(); ++k)
    if (const auto v = judge(from_tensor(got[k]), right[k]); !v.ok)
      return fmt::format("{}: output {}: {}", how, c.op.outputs[k], v.reason);
  return "";
}

Found one(CheckRun& run, const PreparedCase& c, Arrange arrange) {
  const OnBackend on(run.backend());
  std::vector<Array> meant = c.inputs;
  std::vector<Arranged> operands;
  std::vector<Tensor> stored;
  std::vector<InputSpec> specs;
  for (Array& a : meant) {
    operands.push_back(arrange(a));
    stored.push_back(to_tensor(operands.back().stored, run.backend()));
    specs.push_back({fmt::format("x{}", specs.size()), type_of(operands.back().stored)});
  }
  const auto right = value_or_raise(bound_op(c.op, c.attrs, meant));
  if (auto words = judged(c, call(c, operands, stored), right, "eagerly"); !words.empty())
    return Found::wrong(words);
  auto program = compile([&](const std::vector<Tensor>& in) { return call(c, operands, in); }, specs);
  return Found::wrong(judged(c, program(stored), right, "as one program"));
}

void run(CheckRun& run) {
  const std::pair<const char*, Arrange> ways[] = {{"permuted", by_permuting}, {"broadcast", by_broadcasting}};
  for (const auto& file : case_files()) {
    const ir::OpDef& op = op_of(file);
    if (op.updates[0].output >= 0 || op.n_inputs == 0) continue;  // updated operands are tensors of their own
    OpCases cases = file.cases();
    for (Case& c : cases)
      if (has_free_dtype(c)) c.dtypes &= only({DType::f32, DType::i32});
    for (const auto& [how, arrange] : ways)
      each_case(
          op, cases, [&](const std::string& label) { return run.wants(fmt::format("{}/{}", how, label)); },
          [&](const PreparedCase& c) {
            const bool some =
                std::ranges::any_of(c.inputs, [&](Array a) { return arrange(a).op != nullptr; });
            if (some) run.run(fmt::format("{}/{}", how, c.label), [&] { return one(run, c, arrange); });
          });
  }
}

}  // namespace

extern const Check check = {
    "arranged", "operands that are permuted or broadcast give the same answer, eagerly and compiled", run};

}  // namespace weft::conformance::checks::arranged

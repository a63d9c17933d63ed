#include "conformance/prepared.h"

namespace weft::conformance {

const ir::OpDef& op_of(const CaseFile& file) {
  const ir::OpDef* op = ir::find_op(file.op);
  if (!op) throw Error(invalid("conformance/ops/{}.cpp: there is no such op", file.op));
  return *op;
}

static std::string label(const ir::OpDef& op, const Case& c, DType t) {
  std::string s = op.name;
  if (has_free_dtype(c)) s += fmt::format(" {}", name(t));
  for (const auto& i : c.inputs) s += " " + text(std::span<const int64_t>(i.shape));
  return fmt::format("{} ({})", s, c.why);
}

void each_case(const ir::OpDef& op, const OpCases& cases,
               const std::function<bool(const std::string&)>& wanted,
               const std::function<void(const PreparedCase&)>& f) {
  uint64_t seed = 1;
  for (const auto& c : cases) {
    const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
    for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
      const auto t = static_cast<DType>(i);
      if (!holds(c.dtypes, t)) continue;
      ++seed;
      const std::string name = label(op, c, t);
      if (!wanted(name)) continue;
      auto inputs = make_inputs(c, t, seed);
      auto right = bound_op(op, attrs, inputs);
      if (!right.ok() && right.status().code() == Code::invalid_argument)
        continue;  // not an operand of this op
      f({op, t, attrs, std::move(inputs), value_or_raise(std::move(right)), name});
    }
  }
}

}  // namespace weft::conformance

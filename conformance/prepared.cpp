#include "conformance/prepared.h"

#include <cmath>
#include <map>

#include "base/identical.h"
#include "seam/registry.h"

namespace weft::conformance {
namespace {

// The inputs of a right answer, and the answer; none if the op does not take the operands.
struct Kept {
  std::vector<AttrValue> attrs;
  std::vector<Array> inputs;
  std::optional<std::vector<Bounded>> right;
};
std::optional<std::map<std::string, Kept>> kept;
int keepers = 0;
constexpr size_t kMostKept = 20'000;  // elements of a case's operands

bool same(const Array& a, const Array& b) {
  const auto equal = [](Real x, Real y) {
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
  };
  return a.dtype == b.dtype && a.shape == b.shape && std::equal(a.v.begin(), a.v.end(), b.v.begin(), equal);
}

std::optional<std::vector<Bounded>> right_answer(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                                 const std::vector<Array>& inputs) {
  auto right = bound_op(op, attrs, inputs);
  if (!right.ok() && right.status().code() == Code::invalid_argument) return std::nullopt;
  return value_or_raise(std::move(right));
}

std::optional<std::vector<Bounded>> kept_answer(const std::string& label, const ir::OpDef& op,
                                                const std::vector<AttrValue>& attrs,
                                                const std::vector<Array>& inputs) {
  size_t elements = 0;
  for (const Array& a : inputs) elements += a.v.size();
  if (!kept || elements > kMostKept) return right_answer(op, attrs, inputs);
  // Two cases may have the same label, so the operands are compared too.
  auto& entry = (*kept)[label];
  if (!identical(entry.attrs, attrs) ||
      !std::equal(inputs.begin(), inputs.end(), entry.inputs.begin(), entry.inputs.end(), same) ||
      entry.inputs.empty())
    entry = {attrs, inputs, right_answer(op, attrs, inputs)};
  return entry.right;
}

}  // namespace

KeptAnswers::KeptAnswers() {
  if (keepers++ == 0) kept.emplace();
}
KeptAnswers::~KeptAnswers() {
  if (--keepers == 0) kept.reset();
}

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
      auto right = kept_answer(fmt::format("{} {}", name, seed), op, attrs, inputs);
      if (right) f({op, t, attrs, std::move(inputs), std::move(*right), name});
    }
  }
}

Found judged_refusal(const PreparedCase& c, const std::string& backend, const std::string& refused) {
  const uint64_t claimed = value_or_raise(seam::registry().open(backend))->capability().dtypes;
  const auto has = [&](DType t) { return claimed >> static_cast<int>(t) & 1; };
  for (const auto& a : c.inputs)
    if (!has(a.dtype)) return Found::refused(refused);
  for (const auto& b : c.right)
    if (!has(b.value.dtype)) return Found::refused(refused);
  return Found::wrong("it is refused, though the device claims all of its dtypes: " + refused);
}

}  // namespace weft::conformance

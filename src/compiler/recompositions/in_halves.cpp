#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// Operands widened to f32 and a result rounded to a half again: what the op itself does with halves.
static std::vector<Term> terms_of_in_halves() {
  const Term a = any("a"), b = any("b"), c = any("c"), d = any("d");
  std::vector<Term> all;
  for (const Term& y : {op("gelu", {a}), op("silu", {a}), op("softmax", {a}), op("layer_norm", {a}),
                        op("layer_norm", {a, b}), op("layer_norm", {a, b, c}), op("rms_norm", {a, b}),
                        op("rope", {a, b, c}), op("attention", {a, b, c}), op("attention", {a, b, c, d})})
    all.push_back(op("cast", {y.as("wide")}));
  return all;
}

// The half that was widened to this value, or a constant that is the same in a half.
static ir::Value narrow(const Place& p, int32_t id, DType half) {
  const ir::Node* node = p.matcher.maker(id);
  const std::string_view op = node ? node->op->name : "";
  if (op == "cast" && p.matcher.type(node->inputs[0]).dtype == half) return p.graph.value(node->inputs[0]);
  const auto c = p.matcher.constant(id);
  const bool exact = op == "full" && c && c->times == Dim(1) && (c->value == 0 || c->value == 1);
  return exact ? p.graph.full(c->value, p.matcher.type(id).shape, half) : ir::Value();
}

static ir::Value make_in_halves(const Place& p) {
  const DType half = p.root_value().dtype();
  const ir::Node wide = *p.matcher.maker(p.match.value("wide"));
  if (!is_half(half) || p.value("wide").dtype() != DType::f32) return {};
  const auto widened = [&](int32_t id) {
    const ir::Node* node = id < 0 ? nullptr : p.matcher.maker(id);
    return node && std::string_view(node->op->name) == "cast" &&
           p.matcher.type(node->inputs[0]).dtype == half;
  };
  if (!widened(wide.inputs[0])) return {};
  ir::ValueList in;
  for (const int32_t id : wide.inputs) {
    const bool as_it_is = id >= 0 && p.matcher.type(id).dtype != DType::f32;  // a bool mask
    in.push_back(id < 0 ? ir::Value() : as_it_is ? p.graph.value(id) : narrow(p, id, half));
    if (id >= 0 && !in.back()) return {};
  }
  return p.graph.call(*wide.op, in, wide.attrs)[0];
}

extern const Recomposition in_halves_recomposition = {"in_halves", terms_of_in_halves, make_in_halves};

}  // namespace weft::compiler

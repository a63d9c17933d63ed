#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// (x - mean) / sqrt(variance + epsilon) over the last axes; a weight and a bias that follow become its own.
static std::vector<Term> terms_of_layer_norm() {
  const Term x = any("x"), centered = sub(x, fold("mean", x, "axes")).as("centered");
  const Term by_parts = add(fold("mean", square(any("centered")), "axes"), number("epsilon"));
  const Term by_op = add(fold("variance", x, "axes"), number("epsilon"));
  std::vector<Term> all;
  for (const Term& rest : {by_parts, by_op}) {
    all.push_back(mul(centered, rsqrt(rest)));
    all.push_back(div(centered, sqrt(rest)));
  }
  all.push_back(mul(op("layer_norm", {x}).as("normed"), any("weight")));
  all.push_back(add(op("layer_norm", {x}).as("normed"), any("bias")));
  all.push_back(add(op("layer_norm", {x, any("its weight")}).as("normed"), any("bias")));
  return all;
}

// A norm with another operand, if that is one row or has axes of size 1 before it.
static ir::Value extended(const Place& p) {
  const ir::Value normed = p.value("normed");
  const ir::Node node = *p.matcher.maker(normed.id());
  const auto trailing = std::get<int64_t>(attr(node, "trailing"));
  const ir::Value more = p.value(p.match.has("weight") ? "weight" : "bias");
  const Shape row(normed.shape().end() - trailing, normed.shape().end());
  if (!is_row(more.type(), row) || more.dtype() != normed.dtype()) return {};
  const ir::Value own = reshaped(p.graph, more, row);
  const std::array in = {p.value("x"),
                         p.match.has("its weight") ? p.value("its weight")
                         : p.match.has("weight")   ? own
                                                   : ir::Value(),
                         p.match.has("bias") ? own : ir::Value()};
  return p.graph.call(*node.op, in, node.attrs)[0];
}

static ir::Value make_layer_norm(const Place& p) {
  if (p.match.has("normed")) return extended(p);
  const ir::Value x = p.value("x");
  const IntList& axes = p.match.axes("axes");
  const double epsilon = p.match.number("epsilon");
  const auto trailing = static_cast<int64_t>(axes.size());
  if (axes[0] != x.type().rank() - trailing || axes.back() != x.type().rank() - 1 || !(epsilon > 0))
    return {};
  const std::array in = {x, ir::Value(), ir::Value()};
  return p.graph.call("layer_norm", in, {{"trailing", trailing}, {"epsilon", epsilon}})[0];
}

extern const Recomposition layer_norm_recomposition = {"layer_norm", terms_of_layer_norm, make_layer_norm};

}  // namespace weft::compiler

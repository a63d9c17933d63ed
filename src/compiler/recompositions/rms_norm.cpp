#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// x / sqrt(mean(x x) + epsilon): rows of ones as its weight. A weight that follows takes their place.
static std::vector<Term> terms_of_rms_norm() {
  const Term x = any("x"), rest = add(fold("mean", square(x), "axes"), number("epsilon"));
  return {mul(x, rsqrt(rest)), div(x, sqrt(rest)),
          mul(op("rms_norm", {x, any("ones")}).as("normed"), any("weight"))};
}

// The weight of a norm that had none.
static ir::Value weighted(const Place& p) {
  const auto ones = p.matcher.constant(p.match.value("ones"));
  const ir::Value normed = p.value("normed"), weight = p.value("weight");
  const Shape row = {normed.shape().back()};
  if (!ones || ones->value != 1 || !(ones->times == Dim(1)) || !is_row(weight.type(), row) ||
      weight.dtype() != normed.dtype())
    return {};
  const AttrValue epsilon = attr(*p.matcher.maker(normed.id()), "epsilon");
  return p.graph.one("rms_norm", {p.value("x"), reshaped(p.graph, weight, row)}, {{"epsilon", epsilon}});
}

static ir::Value make_rms_norm(const Place& p) {
  if (p.match.has("normed")) return weighted(p);
  const TensorType t = p.value("x").type();
  const IntList& axes = p.match.axes("axes");
  const double epsilon = p.match.number("epsilon");
  if (axes.size() != 1 || axes[0] != t.rank() - 1 || !t.shape.back().is_const() || !(epsilon > 0)) return {};
  const ir::Value ones = p.graph.full(1, {t.shape.back()}, t.dtype);
  return p.graph.one("rms_norm", {p.value("x"), ones}, {{"epsilon", epsilon}});
}

extern const Recomposition rms_norm_recomposition = {"rms_norm", terms_of_rms_norm, make_rms_norm};

}  // namespace weft::compiler

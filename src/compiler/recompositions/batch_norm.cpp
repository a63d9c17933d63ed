#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// A batch norm of what a convolution of constant filters makes goes into the filters, and leaves a bias. What
// is made of weights alone runs once, when a session opens (link/recipe.h). Halves are left alone: filters
// that are rounded again would be other filters.
static std::vector<Term> terms_of_batch_norm() {
  const Term bare = op("conv", {any("x"), any("w")}).as("conv");
  const Term mean = any("mean"), variance = any("variance"), weight = any("weight"), bias = any("bias");
  std::vector<Term> all;
  for (const Term& y : {bare, add(bare, any("shift"))}) {
    all.push_back(op("batch_norm", {y, mean, variance}).as("norm"));
    all.push_back(op("batch_norm", {y, mean, variance, weight}).as("norm"));
    all.push_back(op("batch_norm", {y, mean, variance, weight, bias}).as("norm"));
  }
  return all;
}

static ir::Value make_batch_norm(const Place& p) {
  ir::Graph& b = p.graph;
  for (const char* name : {"w", "mean", "variance", "weight", "bias", "shift"})
    if (p.match.has(name) && !p.matcher.made_of_weights(p.match.value(name))) return {};
  const TensorType y = p.root_value().type();
  if (is_half(y.dtype) || !(p.value("conv").type() == y)) return {};
  const ir::Node conv = *p.matcher.maker(p.match.value("conv"));
  const double epsilon = std::get<double>(attr(*p.matcher.maker(p.root), "epsilon"));
  Shape filters(p.value("w").shape().size(), Dim(1)), channels(y.shape.size() - 1, Dim(1));
  filters[0] = channels[0] = y.shape[1];

  ir::Value scale = b.div(1, b.sqrt(b.add(p.value("variance"), epsilon)));
  if (p.match.has("weight")) scale = b.mul(p.value("weight"), scale);
  ir::Value mean = b.reshape(p.value("mean"), channels);
  if (p.match.has("shift")) mean = b.sub(mean, p.value("shift"));
  ir::Value shift = b.mul(b.neg(mean), b.reshape(scale, channels));
  if (p.match.has("bias")) shift = b.add(shift, b.reshape(p.value("bias"), channels));
  if (!(shift.shape() == channels)) return {};  // what was added differs within a channel
  const std::array in = {p.value("x"), b.mul(p.value("w"), b.reshape(scale, filters))};
  return b.add(b.call(*conv.op, in, conv.attrs)[0], shift);
}

extern const Recomposition batch_norm_recomposition = {"batch_norm", terms_of_batch_norm, make_batch_norm};

}  // namespace weft::compiler

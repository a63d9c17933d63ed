#include <cmath>

#include "eager/apply.h"
#include "ir/graph.h"
#include "weft/trace.h"

namespace weft {
namespace {

/// Sees every tensor of a run in order.
class Watch {
 public:
  void see(const std::string& where, const Tensor& t, bool given) {
    if (nan_ || !is_float(t.dtype())) return;
    int64_t count = 0;
    bool nan = false;
    for (const double v : t.to_vector<double>()) count += !std::isfinite(v), nan |= std::isnan(v);
    if (count == 0 || (first_ && !nan)) return;
    first_ = {where, t.type(), count, nan, given}, nan_ = nan;
  }
  bool sure() const { return nan_; }
  std::optional<NotFinite> first() const { return first_; }

 private:
  std::optional<NotFinite> first_;
  bool nan_ = false;  // an infinity may be intended, as in a mask; a NaN is not
};

Tensor copied(const Tensor& t) { return Tensor::from_bytes(t.to_bytes(), t.sizes(), t.dtype(), t.backend()); }

void run(const ir::Node& node, std::vector<Tensor>& values, Watch& watch) {
  const Tensor absent;
  std::vector<const Tensor*> in;
  for (const int32_t i : node.inputs) in.push_back(i < 0 ? &absent : &values[static_cast<size_t>(i)]);
  std::vector<Tensor> out(node.outputs.size());
  eager::apply(*node.op, in, node.attrs, out);
  for (size_t k = 0; k < out.size(); ++k) {
    watch.see(node.where, out[k], false);
    values[static_cast<size_t>(node.outputs[k])] = out[k];
  }
}

}  // namespace

std::optional<NotFinite> first_not_finite(const TracedFunction& function, const std::vector<Tensor>& inputs) {
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < inputs.size(); ++i) specs.push_back({fmt::format("input{}", i), inputs[i].type()});
  const Traced traced = trace(function, specs);
  const ir::Graph& g = *traced.graph;
  const NoGrad off;
  std::vector<Tensor> values(g.types.size());
  Watch watch;
  const auto put = [&](int32_t id, const std::string& name, const Tensor& t) {
    watch.see(name, t, true);
    values[static_cast<size_t>(id)] = t;
  };
  for (size_t i = 0; i < inputs.size(); ++i) put(g.inputs[i].value, g.inputs[i].name, inputs[i]);
  for (size_t i = 0; i < g.weights.size(); ++i) put(g.weights[i].value, g.weights[i].name, traced.weights[i]);
  for (size_t i = 0; i < g.states.size(); ++i)  // copies: the run must not change the caller's states
    put(g.states[i].before, g.states[i].name, copied(traced.states[i]));
  for (const auto& node : g.nodes) {
    if (watch.sure()) break;
    run(node, values, watch);
  }
  return watch.first();
}

}  // namespace weft

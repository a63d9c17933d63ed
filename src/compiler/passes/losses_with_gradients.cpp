#include <algorithm>
#include <set>

#include "base/identical.h"
#include "compiler/match.h"
#include "compiler/module.h"
#include "compiler/uses.h"

namespace weft::compiler {
namespace {

// A cross_entropy and its gradient for the same logits become cross_entropy_with_grad, where the loss is. The
// nodes that make the gradient of the loss, as a rule a constant, move in front of it.
class Joining {
 public:
  explicit Joining(ir::Graph& g) : g_(g), uses_(g), gone_(g.nodes.size(), false) {}

  void run() {
    std::vector<ir::Node> nodes;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (gone_[i]) continue;
      if (g_.nodes[i].op->name == std::string_view("cross_entropy")) join(i, nodes);
      nodes.push_back(std::move(g_.nodes[i]));
    }
    g_.nodes = std::move(nodes);
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  const TensorType& type(int32_t id) const { return g_.types[at(id)]; }

  void join(size_t place, std::vector<ir::Node>& before) {
    ir::Node& loss = g_.nodes[place];
    for (const size_t i : uses_.readers[at(loss.inputs[0])]) {
      const ir::Node& gradient = g_.nodes[i];
      if (i < place || gone_[i] || !fits(loss, gradient)) continue;
      std::set<size_t> ahead;
      if (!goes_ahead(gradient.inputs[2], place, ahead)) continue;
      for (const size_t n : ahead) gone_[n] = true, before.push_back(g_.nodes[n]);
      gone_[i] = true;
      loss.attrs = {attr(loss, "ignore_index"), attr(loss, "label_smoothing"), attr(loss, "wide"),
                    attr(loss, "summed")};
      loss.op = ir::find_op("cross_entropy_with_grad");
      loss.inputs = {loss.inputs[0], loss.inputs[1], gradient.inputs[2], loss.inputs[2]};
      loss.outputs.insert(loss.outputs.begin(), gradient.outputs[0]);
      return;
    }
  }

  bool fits(const ir::Node& loss, const ir::Node& gradient) const {
    if (gradient.op->name != std::string_view("cross_entropy_grad") || gradient.run != loss.run) return false;
    if (gradient.inputs[0] != loss.inputs[0] || gradient.inputs[1] != loss.inputs[1] ||
        gradient.inputs[3] != loss.inputs[2] || !(type(gradient.inputs[2]) == type(loss.outputs[0])))
      return false;
    return std::ranges::all_of(
        std::array{"ignore_index", "label_smoothing", "summed"},
        [&](const char* name) { return identical(attr(loss, name), attr(gradient, name)); });
  }

  // Can the value be made before this place? By nodes that read nothing that is overwritten, and not the
  // loss.
  bool goes_ahead(int32_t id, size_t place, std::set<size_t>& nodes) const {
    const size_t maker = uses_.maker[at(id)];
    if (uses_.overwriter[at(id)] != Uses::kNone) return false;
    if (maker == Uses::kNone || maker < place || nodes.contains(maker)) return true;
    if (maker == place || gone_[maker] || !is_pure(g_.nodes[maker])) return false;
    nodes.insert(maker);
    return std::ranges::all_of(g_.nodes[maker].inputs,
                               [&](int32_t in) { return in < 0 || goes_ahead(in, place, nodes); });
  }

  ir::Graph& g_;
  const Uses uses_;
  std::vector<bool> gone_;  // by node: taken into another, or ahead
};

}  // namespace

Status join_losses_with_gradients(Module& m, const Options& options) {
  if (options.fuse) Joining(m.graph).run();
  return {};
}

}  // namespace weft::compiler

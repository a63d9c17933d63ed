#include <algorithm>

#include "compiler/module.h"

namespace weft::compiler {
namespace {

// Moves a reshape to the first node that needs it, but not past one that overwrites its operand.
class Views {
 public:
  explicit Views(const ir::Graph& g)
      : g_(g),
        needed_at_(g.types.size(), g.nodes.size()),
        overwritten_at_(needed_at_),
        ahead_(g.nodes.size()) {}

  std::vector<size_t> order() {
    for (size_t i = g_.nodes.size(); i-- > 0;) {
      const ir::Node& node = g_.nodes[i];
      const size_t at = place_of(i);
      ahead_[at].push_back(i);
      for (const int32_t id : node.inputs)
        if (id >= 0) needed_at_[static_cast<size_t>(id)] = std::min(needed_at_[static_cast<size_t>(id)], at);
      for (const auto& update : node.op->updates)
        if (update.input >= 0)
          overwritten_at_[static_cast<size_t>(node.inputs[static_cast<size_t>(update.input)])] = i;
    }
    std::vector<size_t> all;
    for (auto& nodes : ahead_) all.insert(all.end(), nodes.rbegin(), nodes.rend());
    return all;
  }

 private:
  size_t place_of(size_t i) const {
    const ir::Node& node = g_.nodes[i];
    if (std::string_view(node.op->name) != "reshape") return i;
    const size_t at = std::min(needed_at_[static_cast<size_t>(node.outputs[0])],
                               overwritten_at_[static_cast<size_t>(node.inputs[0])]);
    return at < g_.nodes.size() ? at : i;  // only outputs of the graph read it
  }

  const ir::Graph& g_;
  std::vector<size_t> needed_at_, overwritten_at_;  // by value: the first node that does so
  std::vector<std::vector<size_t>> ahead_;          // by node: the views that it needs, then itself; reversed
};

}  // namespace

// So products that share a factor are adjacent, whatever views follow them.
Status sink_views(Module& m, const Options&) {
  std::vector<ir::Node> nodes;
  for (const size_t i : Views(m.graph).order()) nodes.push_back(std::move(m.graph.nodes[i]));
  m.graph.nodes = std::move(nodes);
  return {};
}

}  // namespace weft::compiler

#include "compiler/module.h"

namespace weft::compiler {

// A node lives if a result of it reaches an output, the end of a state, or another living node.
Status remove_dead_nodes(Module& m, const Options&) {
  auto& g = m.graph;
  std::vector<bool> needed(g.types.size(), false);
  const auto need = [&](int32_t id) {
    if (id >= 0) needed[static_cast<size_t>(id)] = true;
  };
  for (const auto& o : g.outputs) need(o.value);
  for (const auto& s : g.states) need(s.after);
  std::vector<ir::Node> kept;
  for (size_t i = g.nodes.size(); i-- > 0;) {
    auto& node = g.nodes[i];
    bool lives = false;
    for (const int32_t id : node.outputs) lives |= needed[static_cast<size_t>(id)];
    if (!lives) continue;
    for (const int32_t id : node.inputs) need(id);
    kept.push_back(std::move(node));
  }
  g.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  return {};
}

}  // namespace weft::compiler

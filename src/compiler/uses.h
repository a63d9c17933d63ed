#pragma once
#include "ir/graph.h"

namespace weft::compiler {

/// Who makes, reads and overwrites each value of a graph, by the places of nodes. It does not follow changes.
struct Uses {
  static constexpr size_t kNone = SIZE_MAX;
  explicit Uses(const ir::Graph& g)
      : maker(g.types.size(), kNone),
        overwriter(g.types.size(), kNone),
        readers(g.types.size()),
        kept(g.types.size(), false) {
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      const ir::Node& node = g.nodes[i];
      for (const int32_t id : node.inputs)
        if (id >= 0) readers[at(id)].push_back(i);
      for (const int32_t id : node.outputs) maker[at(id)] = i;
      for (const auto& u : node.op->updates)
        if (u.output >= 0) overwriter[at(node.inputs[static_cast<size_t>(u.input)])] = i;
    }
    for (const auto& o : g.outputs) kept[at(o.value)] = true;
    for (const auto& s : g.states)
      if (s.after >= 0) kept[at(s.after)] = true;
  }
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  /// Does one node read it, and nothing else see it?
  bool is_read_once(int32_t id) const { return !kept[at(id)] && readers[at(id)].size() == 1; }

  std::vector<size_t> maker, overwriter;
  std::vector<std::vector<size_t>> readers;
  std::vector<bool> kept;  ///< an output, or the end of a state
};

}  // namespace weft::compiler

#include <algorithm>
#include <map>

#include "base/identical.h"
#include "compiler/module.h"

namespace weft::compiler {

// Two pure nodes with the same op, attributes and operands have the same results: the second becomes the
// first. Values are immutable (an update makes a new one), so equal operands really are equal. Nodes that
// recompute results, so that those of the first run can be freed, are not merged with them.
Status merge_equal_nodes(Module& m, const Options&) {
  auto& g = m.graph;
  std::vector<int32_t> same(g.types.size());
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<int32_t>(i);
  const auto resolve = [&](int32_t id) { return id < 0 ? id : same[static_cast<size_t>(id)]; };
  // A state's buffer holds the old value only until its update, so values must not live across one.
  // Nodes that read a state are left alone.
  std::vector<bool> from_state(g.types.size(), false);
  for (const auto& s : g.states)
    from_state[static_cast<size_t>(s.before)] = from_state[static_cast<size_t>(s.after)] = true;
  // A result that is overwritten later is not merged: its twin may be read after that.
  std::vector<bool> overwritten(g.types.size(), false);
  for (const auto& node : g.nodes)
    for (const auto& u : node.op->updates)
      if (u.output >= 0) overwritten[static_cast<size_t>(node.inputs[static_cast<size_t>(u.input)])] = true;

  std::map<std::pair<const ir::OpDef*, std::vector<int32_t>>, std::vector<const ir::Node*>> seen;
  for (auto& node : g.nodes) {
    bool reads_state = false;
    for (int32_t& id : node.inputs) {
      id = resolve(id);
      reads_state |= id >= 0 && from_state[static_cast<size_t>(id)];
    }
    const bool is_overwritten = std::any_of(node.outputs.begin(), node.outputs.end(),
                                            [&](int32_t id) { return overwritten[static_cast<size_t>(id)]; });
    if (!is_pure(node) || reads_state || is_overwritten) continue;
    auto& alike = seen[{node.op, node.inputs}];
    const ir::Node* twin = nullptr;
    for (const auto* other : alike)
      if (other->run == node.run && identical(other->attrs, node.attrs)) twin = other;
    if (!twin) {
      alike.push_back(&node);
      continue;
    }
    for (size_t k = 0; k < node.outputs.size(); ++k)
      same[static_cast<size_t>(node.outputs[k])] = twin->outputs[k];
  }
  for (auto& o : g.outputs) o.value = resolve(o.value);
  for (auto& s : g.states) s.after = resolve(s.after);
  return {};
}

}  // namespace weft::compiler

#include "compiler/units.h"

#include <algorithm>
#include <map>

namespace weft::compiler {

Units::Units(const Module& m) : g_(m.graph), overwritten_at_(m.graph.types.size(), SIZE_MAX) {
  add_units(m);
  readers_.resize(g_.types.size());
  makers_.resize(g_.types.size(), units_.size());
  for (size_t u = 0; u < units_.size(); ++u) {
    for (const int32_t id : units_[u].inputs) readers_[static_cast<size_t>(id)].push_back(u);
    for (const int32_t id : units_[u].outputs) makers_[static_cast<size_t>(id)] = u;
  }
  for (size_t i = 0; i < g_.nodes.size(); ++i)
    for (const auto& update : g_.nodes[i].op->updates)
      if (update.input >= 0)
        overwritten_at_[static_cast<size_t>(g_.nodes[i].inputs[static_cast<size_t>(update.input)])] = i;
}

void Units::add_units(const Module& m) {
  std::map<size_t, const Fusion*> ends;
  std::set<size_t> inside;
  for (const auto& f : m.fusions) {
    ends[f.nodes.back()] = &f;
    inside.insert(f.nodes.begin(), f.nodes.end());
  }
  for (size_t i = 0; i < g_.nodes.size(); ++i) {
    const auto fusion = ends.find(i);
    if (fusion != ends.end())
      units_.push_back(unit_of(i, fusion->second->nodes, "elementwise", true));
    else if (!inside.count(i))
      units_.push_back(unit_of(i, std::span(&i, 1), g_.nodes[i].op->name, false));
  }
  std::set<size_t> taken;
  for (const Group& group : m.groups) taken.insert(group.places.begin(), group.places.end());
  for (Unit& unit : units_) unit.taken = taken.count(unit.place) != 0;
}

Unit Units::unit_of(size_t place, std::span<const size_t> nodes, const char* name, bool chain) const {
  Unit unit{.place = place, .inputs = {}, .outputs = {}, .name = name, .chain = chain};
  for (const size_t n : nodes) {
    for (const int32_t id : g_.nodes[n].inputs)
      if (id >= 0) unit.inputs.insert(id);
    unit.outputs.insert(g_.nodes[n].outputs.begin(), g_.nodes[n].outputs.end());
  }
  for (const int32_t id : unit.outputs) unit.inputs.erase(id);
  const ir::Node& node = g_.nodes[place];
  unit.elementwise = chain || (is_pure(node) && is_elementwise(g_, node));
  return unit;
}

bool Units::may_be_one(std::span<const size_t> members) const {
  const size_t last = members.back();
  std::set<int32_t> inputs;
  for (const size_t m : members) {
    for (const int32_t id : units_[m].outputs)
      for (const size_t r : readers_[static_cast<size_t>(id)])
        if (r < last && std::ranges::find(members, r) == members.end()) return false;
    inputs.insert(units_[m].inputs.begin(), units_[m].inputs.end());
  }
  return inputs.size() <= kMostInputs && std::ranges::none_of(inputs, [&](int32_t id) {
           return overwritten_at_[static_cast<size_t>(id)] <= units_[last].place;
         });
}

}  // namespace weft::compiler

#include <algorithm>
#include <map>
#include <set>

#include "compiler/module.h"

// Products and their companions become one call: products with the same left factor, such as query, key and
// value of attention, and an elementwise call that reads a product and has its shape. A device that compiles
// text makes few kernels of it; others run the calls one by one. So do a convolution and the bias, residual
// and activation that follow it.
namespace weft::compiler {
namespace {

constexpr size_t kWindow = 24;      // calls after a product in which companions are searched
constexpr size_t kMostCalls = 6;    // of a group
constexpr size_t kMostInputs = 24;  // as of a chain

/// A future call of the program: a node, or a chain.
struct Unit {
  size_t place;  // the number of its last node
  std::set<int32_t> inputs, outputs;
  const char* name;
  bool product = false, conv = false, elementwise = false;
};

class Grouper {
 public:
  explicit Grouper(const Module& m) : g_(m.graph), overwritten_at_(m.graph.types.size(), SIZE_MAX) {
    add_units(m);
    readers_.resize(g_.types.size());
    for (size_t u = 0; u < units_.size(); ++u)
      for (const int32_t id : units_[u].inputs) readers_[static_cast<size_t>(id)].push_back(u);
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      for (const auto& update : g_.nodes[i].op->updates)
        if (update.input >= 0)
          overwritten_at_[static_cast<size_t>(g_.nodes[i].inputs[static_cast<size_t>(update.input)])] = i;
  }

  std::vector<Group> run() {
    std::vector<Group> groups;
    std::vector<bool> taken(units_.size(), false);
    for (size_t u = 0; u < units_.size(); ++u) {
      if (taken[u] || !(units_[u].product || units_[u].conv)) continue;
      const auto members = grow(u, taken);
      if (members.size() < 2) continue;
      Group group;
      for (const size_t m : members) {
        taken[m] = true;
        group.places.push_back(units_[m].place);
        group.name += (group.name.empty() ? "" : "_") + std::string(units_[m].name);
      }
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  void add_units(const Module& m) {
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
  }
  Unit unit_of(size_t place, std::span<const size_t> nodes, const char* name, bool chain) const {
    Unit unit{.place = place, .inputs = {}, .outputs = {}, .name = name};
    for (const size_t n : nodes) {
      for (const int32_t id : g_.nodes[n].inputs)
        if (id >= 0) unit.inputs.insert(id);
      unit.outputs.insert(g_.nodes[n].outputs.begin(), g_.nodes[n].outputs.end());
    }
    for (const int32_t id : unit.outputs) unit.inputs.erase(id);
    const ir::Node& node = g_.nodes[place];
    const std::string_view op = node.op->name;
    unit.product = !chain && (op == "linear" || op == "matmul");
    unit.conv = !chain && (op == "conv" || op == "conv_channels_last");
    unit.elementwise = chain || (is_pure(node) && is_elementwise(g_, node));
    return unit;
  }

  const TensorType& result(size_t u) const {
    return g_.types[static_cast<size_t>(g_.nodes[units_[u].place].outputs[0])];
  }
  int32_t left_factor(size_t u) const { return g_.nodes[units_[u].place].inputs[0]; }

  std::vector<size_t> grow(size_t first, const std::vector<bool>& taken) const {
    std::vector<size_t> members = {first};
    const size_t end = std::min(units_.size(), first + kWindow);
    const auto join = [&](size_t u) {
      if (taken[u] || members.size() == kMostCalls) return;
      members.push_back(u);
      if (!may_be_one(members)) members.pop_back();
    };
    for (size_t u = first + 1; u < end; ++u)
      if (units_[first].product && units_[u].product && left_factor(u) == left_factor(first) &&
          result(u) == result(first))
        join(u);
    for (size_t u = members.back() + 1; u < end; ++u)
      if (units_[u].elementwise && reads(u, members) && result(u).shape == result(first).shape) join(u);
    return members;
  }
  bool reads(size_t u, const std::vector<size_t>& members) const {
    return std::ranges::any_of(members, [&](size_t m) {
      return std::ranges::any_of(units_[m].outputs, [&](int32_t id) { return units_[u].inputs.count(id); });
    });
  }
  // All of them can run at the place of the last one: no other call needs a result before, and no operand is
  // overwritten before.
  bool may_be_one(const std::vector<size_t>& members) const {
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

  const ir::Graph& g_;
  std::vector<Unit> units_;
  std::vector<std::vector<size_t>> readers_;  // units, by value
  std::vector<size_t> overwritten_at_;        // by value: the node
};

}  // namespace

Status group_products(Module& m, const Options& options) {
  if (options.fuse) m.groups = Grouper(m).run();
  return {};
}

}  // namespace weft::compiler

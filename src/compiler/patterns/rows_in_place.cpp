#include <algorithm>
#include <vector>

#include "compiler/module.h"

// Rows that are scattered into a value, whose result then takes the value's place, as an exported cache does
// with index_copy_ and index_put_: they are written where the value lies, at the cost of the rows.
namespace weft::compiler {
namespace {

class RowsInPlace {
 public:
  explicit RowsInPlace(ir::Graph& g) : g_(g), maker_(g.types.size(), -1), updated_(g.types.size(), false) {
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      for (const int32_t id : g.nodes[i].outputs) maker_[at(id)] = static_cast<int32_t>(i);
      for (const auto& u : g.nodes[i].op->updates)
        if (u.output >= 0) updated_[at(g.nodes[i].inputs[at(u.input)])] = true;
    }
  }

  void run() {
    for (size_t j = 0; j < g_.nodes.size(); ++j)
      if (const int32_t i = scatter_for(j); i >= 0) write_there(static_cast<size_t>(i), j);
    size_t place = 0;
    std::erase_if(g_.nodes, [&](const ir::Node&) { return std::ranges::count(gone_, place++) > 0; });
  }

 private:
  static size_t at(int64_t id) { return static_cast<size_t>(id); }
  static bool reads(const ir::Node& node, int32_t id) { return std::ranges::count(node.inputs, id) > 0; }

  // The scatter whose result node j assigns to what it was scattered into, if nothing reads that any more.
  int32_t scatter_for(size_t j) const {
    const ir::Node& assign = g_.nodes[j];
    if (std::string_view(assign.op->name) != "assign") return -1;
    const int32_t to = assign.inputs[0], made = assign.inputs[1], i = maker_[at(made)];
    if (i < 0 || updated_[at(made)]) return -1;
    const ir::Node& scatter = g_.nodes[at(i)];
    if (std::string_view(scatter.op->name) != "scatter" || scatter.inputs[0] != to ||
        scatter.run != assign.run || std::ranges::count(scatter.inputs, to) != 1)
      return -1;
    for (size_t k = at(i) + 1; k < g_.nodes.size(); ++k)
      if (k != j && reads(g_.nodes[k], to)) return -1;
    return std::ranges::any_of(g_.outputs, [&](const auto& o) { return o.value == to; }) ? -1 : i;
  }

  void write_there(size_t i, size_t j) {
    const int32_t made = g_.nodes[i].outputs[0], next = g_.nodes[j].outputs[0];
    g_.nodes[i].op = ir::find_op("assign_rows");
    g_.nodes[i].outputs[0] = next;
    for (ir::Node& node : g_.nodes) std::ranges::replace(node.inputs, made, next);
    for (auto& o : g_.outputs) o.value = o.value == made ? next : o.value;
    for (auto& s : g_.states) s.after = s.after == made ? next : s.after;
    gone_.push_back(j);
  }

  ir::Graph& g_;
  std::vector<int32_t> maker_;  // by value: a node, or -1
  std::vector<bool> updated_;   // by value
  std::vector<size_t> gone_;    // nodes
};

}  // namespace

Status write_rows_in_place(Module& m, const Options& options) {
  if (options.fuse) RowsInPlace(m.graph).run();
  return {};
}

}  // namespace weft::compiler

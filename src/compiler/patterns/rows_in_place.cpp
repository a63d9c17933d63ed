#include <algorithm>
#include <vector>

#include "compiler/module.h"
#include "compiler/uses.h"

// Rows that are scattered into a value, whose result then takes the value's place, as an exported cache does
// with index_copy_ and index_put_: they are written where the value lies, at the cost of the rows.
namespace weft::compiler {
namespace {

class RowsInPlace {
 public:
  explicit RowsInPlace(ir::Graph& g) : g_(g), before_(g) {}

  void run() {
    for (size_t j = 0; j < g_.nodes.size(); ++j)
      if (const size_t i = scatter_for(j); i != Uses::kNone) write_there(i, j);
    for (auto at = gone_.rbegin(); at != gone_.rend(); ++at)
      g_.nodes.erase(g_.nodes.begin() + static_cast<std::ptrdiff_t>(*at));
  }

 private:
  static bool reads(const ir::Node& node, int32_t id) { return std::ranges::count(node.inputs, id) > 0; }

  // The scatter whose result node j assigns to what it was scattered into, if nothing reads that any more.
  size_t scatter_for(size_t j) const {
    const ir::Node& assign = g_.nodes[j];
    if (std::string_view(assign.op->name) != "assign") return Uses::kNone;
    const int32_t to = assign.inputs[0], made = assign.inputs[1];
    const size_t i = before_.maker[Uses::at(made)];
    if (i == Uses::kNone || before_.overwriter[Uses::at(made)] != Uses::kNone) return Uses::kNone;
    const ir::Node& scatter = g_.nodes[i];
    if (std::string_view(scatter.op->name) != "scatter" || scatter.inputs[0] != to ||
        scatter.run != assign.run || std::ranges::count(scatter.inputs, to) != 1)
      return Uses::kNone;
    for (size_t k = i + 1; k < g_.nodes.size(); ++k)
      if (k != j && reads(g_.nodes[k], to)) return Uses::kNone;
    return std::ranges::any_of(g_.outputs, [&](const auto& o) { return o.value == to; }) ? Uses::kNone : i;
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
  const Uses before_;         // as the graph was: makers and overwriters stay what they are
  std::vector<size_t> gone_;  // nodes, in order
};

}  // namespace

Status write_rows_in_place(Module& m, const Options& options) {
  if (options.fuse) RowsInPlace(m.graph).run();
  return {};
}

}  // namespace weft::compiler

#include <cmath>
#include <numeric>

#include "compiler/match.h"
#include "compiler/module.h"
#include "compiler/uses.h"

// One form of what may be written in several: a node that gives an operand as it is, to the bit, goes, and a
// view of a view is one. Exporters leave both where sizes are 1 and factors 1.0.
namespace weft::compiler {
namespace {

class Canonical {
 public:
  explicit Canonical(ir::Graph& g) : g_(g), matcher_(g), uses_(g), same_(g.types.size()) {
    std::iota(same_.begin(), same_.end(), 0);
  }

  void run() {
    for (ir::Node& node : std::exchange(g_.nodes, {})) {
      for (int32_t& id : node.inputs) id = id < 0 ? id : same_[Uses::at(id)];
      join_views(node);
      const int32_t operand = given(node);
      if (operand >= 0 && may_stand_for(operand, node)) same_[Uses::at(node.outputs[0])] = operand;
      g_.nodes.push_back(std::move(node));
      matcher_.add_last_node();
    }
  }

 private:
  static bool is(const ir::Node& node, std::string_view op) { return op == node.op->name; }
  const TensorType& type(int32_t id) const { return matcher_.type(id); }

  // The operand lives on instead of the result. What a state held before is gone after its update, and a node
  // that computes something again must not keep what it was computed from.
  bool may_stand_for(int32_t operand, const ir::Node& node) const {
    const size_t result = Uses::at(node.outputs[0]);
    return !uses_.kept[result] && uses_.overwriter[result] == Uses::kNone && may_be_read_by(operand, node);
  }
  bool may_be_read_by(int32_t id, const ir::Node& node) const {
    const ir::Node* maker = matcher_.maker(id);
    return uses_.overwriter[Uses::at(id)] == Uses::kNone && (!maker || maker->run == node.run);
  }

  // The axis of the operand for each axis of the result.
  static IntList axes_of(const ir::Node& permute, int64_t rank) {
    IntList axes;
    for (const Dim d : std::get<Shape>(attr(permute, "axes")))
      axes.push_back(d.value() < 0 ? d.value() + rank : d.value());
    for (int64_t d = rank; axes.size() < static_cast<size_t>(rank);) axes.push_back(--d);
    return axes;
  }

  void join_views(ir::Node& node) const {
    const bool reshape = is(node, "reshape"), permute = is(node, "permute");
    const ir::Node* before = reshape || permute ? matcher_.maker(node.inputs[0]) : nullptr;
    if (!before || before->op != node.op || before->run != node.run ||
        !may_be_read_by(before->inputs[0], node))
      return;
    if (permute) {
      const int64_t rank = type(node.inputs[0]).rank();
      Shape axes;
      for (const int64_t axis : axes_of(node, rank))
        axes.push_back(axes_of(*before, rank)[static_cast<size_t>(axis)]);
      node.attrs[0] = axes;
    }
    node.inputs[0] = before->inputs[0];
  }

  // The operand that is the first result; -1 for none.
  int32_t given(const ir::Node& node) const {
    if (!is_pure(node) || node.outputs.size() != 1) return -1;
    const auto same_type = [&](size_t i) {
      return node.inputs[i] >= 0 && type(node.inputs[i]) == type(node.outputs[0]);
    };
    if (is(node, "cast") || is(node, "reshape") || is(node, "broadcast") || is(node, "slice"))
      return same_type(0) ? node.inputs[0] : -1;
    if (is(node, "permute")) {
      const auto axes = axes_of(node, type(node.inputs[0]).rank());
      return std::ranges::is_sorted(axes) ? node.inputs[0] : -1;
    }
    for (const size_t i : {0, 1})
      if (node.inputs.size() == 2 && node.inputs[1 - i] >= 0 && same_type(i) && is_neutral(node, 1 - i))
        return node.inputs[i];
    return -1;
  }

  // x * 1, x / 1, x - 0; x + 0, but for floats only x + -0.0: -0.0 + 0.0 is 0.0.
  bool is_neutral(const ir::Node& node, size_t i) const {
    const auto number = matcher_.constant(node.inputs[i]);
    if (!number || !(number->times == Dim(1))) return false;
    const double value = number->value;
    if (is(node, "mul") || (i == 1 && is(node, "div"))) return value == 1;
    const bool negative = std::signbit(value), floats = is_float(type(node.inputs[i]).dtype);
    if (is(node, "add")) return value == 0 && (negative || !floats);
    return i == 1 && is(node, "sub") && value == 0 && !(negative && floats);
  }

  ir::Graph& g_;
  Matcher matcher_;            // of the nodes so far
  const Uses uses_;            // of the graph as it was
  std::vector<int32_t> same_;  // by value: the one that stands for it
};

}  // namespace

Status canonicalise(Module& m, const Options& options) {
  if (options.fuse) Canonical(m.graph).run();
  return {};
}

}  // namespace weft::compiler

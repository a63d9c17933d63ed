#include <algorithm>

#include "compiler/match.h"
#include "compiler/module.h"

// Where the device has kernels of its own for convolutions whose channels lie side by side, they become such.
// Conversions are permutes. What can follow does: elementwise ops, concat, folds. So conversions that would
// meet are never made: one stands where such a chain begins, and one where its end is read by anything else.
namespace weft::compiler {
namespace {

// The axes of the twin of a value, [n, size..., c] for [n, c, size...], and back.
Shape to_last(int64_t rank) {
  Shape axes = {0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  axes.push_back(1);
  return axes;
}
Shape to_first(int64_t rank) {
  Shape axes = {0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) axes.push_back(d);
  return axes;
}
Shape permuted(const Shape& shape, const Shape& axes) {
  Shape to;
  for (const Dim axis : axes) to.push_back(shape[static_cast<size_t>(axis.value())]);
  return to;
}
// Do the axes stay in order, but for those of size 1? Sizes alone don't say: [4, 4, 4] may be turned.
bool only_moves_ones(const Shape& shape, const Shape& axes) {
  int64_t last = -1;
  for (const Dim axis : axes) {
    if (shape[static_cast<size_t>(axis.value())] == Dim(1)) continue;
    if (axis.value() < last) return false;
    last = axis.value();
  }
  return true;
}
bool is_one_number(const Shape& shape) {
  return std::ranges::all_of(shape, [](Dim d) { return d == Dim(1); });
}

class Layouts {
 public:
  Layouts(ir::Graph& g, const HasKernel& has_kernel)
      : g_(g),
        has_kernel_(has_kernel),
        matcher_(g),
        there_(g.types.size(), true),
        twin_(g.types.size(), -1),
        for_gradient_(g.types.size(), false) {
    for (const auto& node : g.nodes)
      if (is(node, "conv_weight_grad")) for_gradient_[at(node.inputs[0])] = true;
  }

  void run() {
    std::vector<ir::Node> old = std::exchange(g_.nodes, {});
    for (ir::Node& node : old) {
      from_ = &node;
      if (!(converted(node) || followed(node))) keep(node);
    }
    for (auto& o : g_.outputs) as_written(o.value);
    for (auto& s : g_.states) as_written(s.after);
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  const TensorType& type(int32_t id) const { return g_.types[at(id)]; }
  bool is(const ir::Node& node, std::string_view op) const { return op == node.op->name; }
  bool has_twin(int32_t id) const { return id >= 0 && twin_[at(id)] >= 0; }

  int32_t add_value(DType dtype, const Shape& shape) {
    g_.types.push_back({dtype, shape});
    there_.push_back(true), twin_.push_back(-1);
    return static_cast<int32_t>(g_.types.size()) - 1;
  }
  void push(ir::Node node) {
    g_.nodes.push_back(std::move(node));
    matcher_.add_last_node();
  }
  // Records a node that is made for the one at hand.
  void add(const char* op, int32_t in, AttrValue attr, int32_t out) {
    push({.op = ir::find_op(op),
          .attrs = {std::move(attr)},
          .inputs = {in},
          .outputs = {out},
          .where = from_->where,
          .from = from_->from,
          .run = from_->run});
  }
  // Moves axes; a view where those of size 1 are all that changes its place.
  void move_axes(int32_t in, const Shape& axes, int32_t out) {
    if (only_moves_ones(type(in).shape, axes))
      add("reshape", in, type(out).shape, out);
    else
      add("permute", in, axes, out);
  }

  // The value is made, if only its twin was.
  void as_written(int32_t id) {
    if (id < 0 || there_[at(id)]) return;
    there_[at(id)] = true;
    move_axes(twin_[at(id)], to_first(static_cast<int64_t>(type(id).shape.size())), id);
  }
  int32_t twin_of(int32_t id) {
    if (twin_[at(id)] >= 0) return twin_[at(id)];
    const Shape axes = to_last(static_cast<int64_t>(type(id).shape.size()));
    const int32_t twin = add_value(type(id).dtype, permuted(type(id).shape, axes));
    move_axes(id, axes, twin);
    return twin_[at(id)] = twin;
  }
  // Of an operand that is broadcast to the rank of what it meets; one number is its own, if it is made.
  int32_t twin_of_operand(int32_t id, size_t rank) {
    const Shape shape = type(id).shape;
    if (is_one_number(shape)) return there_[at(id)] ? id : twin_[at(id)];
    if (shape.size() == rank) return twin_of(id);
    Shape whole(rank - shape.size(), Dim(1));
    for (const Dim d : shape) whole.push_back(d);
    const Shape axes = to_last(static_cast<int64_t>(rank));
    Shape last = permuted(whole, axes);
    while (last[0] == Dim(1)) last.erase(0);
    const bool is_view = only_moves_ones(whole, axes);
    const int32_t view = add_value(type(id).dtype, is_view ? last : whole);
    add("reshape", id, type(view).shape, view);
    return is_view ? view : twin_of(view);
  }
  void keep(ir::Node& node) {
    for (const int32_t id : node.inputs) as_written(id);
    push(std::move(node));
  }
  // The node, on twins, with twins as its results.
  void add_twin(ir::Node& node) {
    for (int32_t& id : node.outputs) {
      const int32_t twin = add_value(
          type(id).dtype, permuted(type(id).shape, to_last(static_cast<int64_t>(type(id).shape.size()))));
      there_[at(id)] = false, twin_[at(id)] = twin;
      id = twin;
    }
    push(std::move(node));
  }

  bool converted(ir::Node& node) {
    if (!is(node, "conv") || for_gradient_[at(node.inputs[0])]) return false;
    const ir::OpDef* op = ir::find_op("conv_channels_last");
    const TensorType x = type(node.inputs[0]), w = type(node.inputs[1]);
    const TensorType last{x.dtype, permuted(x.shape, to_last(x.rank()))};
    const std::array<const TensorType*, 2> types = {&last, &w};
    if (!has_kernel_(*op, types, node.attrs)) return false;
    as_written(node.inputs[1]);
    node.op = op, node.inputs[0] = twin_of(node.inputs[0]);
    add_twin(node);
    return true;
  }

  // Ops that mean the same of twins, where an operand is one or all may be.
  bool followed(ir::Node& node) {
    if (!is_pure(node) || node.outputs.size() != 1) return false;
    const bool elementwise = is_elementwise(g_, node), concat = is(node, "concat");
    if (!elementwise && !concat) return folded(node);
    const size_t rank = type(node.outputs[0]).shape.size();
    bool all = true, only_twin = false, any = false;
    for (const int32_t id : node.inputs) {
      if (id < 0) continue;
      if (!there_[at(id)] && type(id).shape.size() != rank) return false;
      only_twin = only_twin || !there_[at(id)];
      any = any || has_twin(id);
      all = all && (has_twin(id) || matcher_.made_of_weights(id) || is_one_number(type(id).shape));
    }
    if (!(only_twin || (all && any)) || rank < 3) return false;
    for (int32_t& id : node.inputs)
      if (id >= 0) id = twin_of_operand(id, rank);
    if (concat) node.attrs[0] = moved(std::get<int64_t>(node.attrs[0]), static_cast<int64_t>(rank));
    add_twin(node);
    return true;
  }

  // Where an axis of a value, counted from either end, is in its twin.
  static int64_t moved(int64_t axis, int64_t rank) {
    axis = axis < 0 ? axis + rank : axis;
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
  }
  // A fold that keeps its axes gives a twin; one over spatial axes that does not gives what was written.
  bool folded(ir::Node& node) {
    if (!(is(node, "mean") || is(node, "sum") || is(node, "max") || is(node, "min"))) return false;
    const int32_t x = node.inputs[0];
    const int64_t rank = static_cast<int64_t>(type(x).shape.size());
    if (there_[at(x)] || rank < 3) return false;
    Shape axes = std::get<Shape>(node.attrs[0]);
    const bool keeps = std::get<int64_t>(node.attrs[1]) != 0;
    if (axes.empty()) return false;
    bool spatial = true;
    for (Dim& axis : axes) {
      const int64_t to = moved(axis.value(), rank);
      spatial = spatial && to > 0 && to < rank - 1;
      axis = to;
    }
    // The axes that stay must be in the order of the result.
    const bool ordered = spatial && static_cast<int64_t>(axes.size()) == rank - 2;
    if (!keeps && !ordered) return false;
    std::ranges::sort(axes, {}, [](Dim d) { return d.value(); });
    node.inputs[0] = twin_of(x), node.attrs[0] = axes;
    if (keeps)
      add_twin(node);
    else
      push(std::move(node));
    return true;
  }

  ir::Graph& g_;
  const HasKernel& has_kernel_;
  Matcher matcher_;
  std::vector<bool> there_;         // by value: is it made, or only its twin?
  std::vector<int32_t> twin_;       // by value: the same with channels last, or -1
  std::vector<bool> for_gradient_;  // by value: the gradient of filters reads it, as it was written
  const ir::Node* from_ = nullptr;  // the node at hand
};

}  // namespace

Status choose_layouts(Module& m, const Options& options) {
  if (options.fuse && options.has_kernel) Layouts(m.graph, options.has_kernel).run();
  return {};
}

}  // namespace weft::compiler

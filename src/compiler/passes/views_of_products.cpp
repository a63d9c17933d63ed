#include <algorithm>

#include "compiler/module.h"

namespace weft::compiler {
namespace {

// An elementwise node that reads a product through a reshape computes on the product's shape instead, and a
// reshape follows it: so that the two are neighbours and can be one call. The gradient of an activation reads
// what a layer's gradient makes of rows.
class Products {
 public:
  explicit Products(ir::Graph& g) : g_(g), maker_(g.types.size(), -1), readers_(g.types.size(), 0) {
    for (const auto& node : g.nodes)
      for (const int32_t id : node.inputs)
        if (id >= 0) ++readers_[static_cast<size_t>(id)];
    for (const auto& o : g.outputs) ++readers_[static_cast<size_t>(o.value)];
    for (const auto& s : g.states)
      if (s.after >= 0) ++readers_[static_cast<size_t>(s.after)];
  }

  void run() {
    for (ir::Node& node : g_.nodes) {
      if (const int32_t view = product_view(node); view >= 0)
        compute_on_product(std::move(node), view);
      else
        add(std::move(node));
    }
    g_.nodes = std::move(nodes_);
  }

 private:
  const TensorType& type(int32_t id) const { return g_.types[static_cast<size_t>(id)]; }
  int32_t add_value(DType dtype, const Shape& shape) {
    g_.types.push_back({dtype, shape});
    return static_cast<int32_t>(g_.types.size()) - 1;
  }
  void add(ir::Node node) {
    maker_.resize(g_.types.size(), -1);
    for (const int32_t id : node.outputs)
      maker_[static_cast<size_t>(id)] = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(std::move(node));
  }
  // The node that alone reads this value and makes it, if its op is of that name.
  const ir::Node* only_read(int32_t id, std::string_view op) const {
    const auto at = static_cast<size_t>(id);
    if (at >= readers_.size() || readers_[at] != 1 || maker_[at] < 0) return nullptr;
    const ir::Node& node = nodes_[static_cast<size_t>(maker_[at])];
    return op == node.op->name ? &node : nullptr;
  }
  bool is_product_view(int32_t id) const {
    const ir::Node* view = only_read(id, "reshape");
    return view && (only_read(view->inputs[0], "matmul") || only_read(view->inputs[0], "linear"));
  }
  // The operand that is a view of a product, if it is the only one of several; or -1.
  int32_t product_view(const ir::Node& node) const {
    if (node.inputs.size() < 2 || node.outputs.size() != 1 || !is_pure(node) || !is_elementwise(g_, node))
      return -1;
    const Shape& shape = type(node.outputs[0]).shape;
    int32_t view = -1;
    for (const int32_t id : node.inputs) {
      if (id < 0 || !(type(id).shape == shape)) return -1;
      if (!is_product_view(id)) continue;
      if (view >= 0) return -1;
      view = id;
    }
    return view;
  }

  void compute_on_product(ir::Node node, int32_t view) {
    ir::Node back = nodes_[static_cast<size_t>(maker_[static_cast<size_t>(view)])];
    const int32_t product = back.inputs[0];
    const Shape shape = type(product).shape;
    for (int32_t& id : node.inputs) {
      if (id == view) {
        id = product;
        continue;
      }
      ir::Node there = back;
      there.attrs = {AttrValue(shape)};
      there.inputs = {id}, there.outputs = {add_value(type(id).dtype, shape)};
      id = there.outputs[0];
      add(std::move(there));
    }
    back.inputs = {add_value(type(node.outputs[0]).dtype, shape)}, back.outputs = node.outputs;
    node.outputs = back.inputs;
    add(std::move(node));
    add(std::move(back));
  }

  ir::Graph& g_;
  std::vector<int32_t> maker_, readers_;  // by value: the node in nodes_, or -1; how many read it
  std::vector<ir::Node> nodes_;
};

}  // namespace

Status compute_on_products(Module& m, const Options& options) {
  if (options.fuse) Products(m.graph).run();
  return {};
}

}  // namespace weft::compiler

#include "conformance/sizes/work.h"

#include "conformance/noise.h"

namespace weft::conformance {

// The oracle's work for one element of a result, besides reading and writing it: terms of a naive sum, and
// the elements that an insertion sort or a running total visits.
static double work_for_each(const ir::Graph& graph, const ir::Node& node) {
  const std::string_view op = node.op->name;
  const auto terms = static_cast<double>(accumulated_terms(graph, node));
  if (op.starts_with("conv")) return 6 * terms;
  if (op == "matmul") return terms / 3;
  if (op != "sort" && op != "cumsum") return 0;
  const Shape& shape = graph.types[static_cast<size_t>(node.inputs[0])].shape;
  for (size_t i = 0; i < node.attrs.size(); ++i)
    if (node.op->attrs[i].name == std::string_view("axis")) {
      const int64_t axis = std::get<int64_t>(node.attrs[i]);
      return static_cast<double>(
                 shape[static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis)].value()) /
             4;
    }
  return 0;
}

double oracle_work(const ir::Graph& graph) {
  const auto elements = [&](int32_t id) {
    return static_cast<double>(element_count(graph.types[static_cast<size_t>(id)].shape).value());
  };
  double work = 0;
  for (const auto& node : graph.nodes) {
    for (const int32_t id : node.inputs) work += id < 0 ? 0 : elements(id);
    for (const int32_t id : node.outputs) work += elements(id) * (1 + work_for_each(graph, node));
  }
  return work;
}

double oracle_work(const DrawnCall& call) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < call.like.size(); ++i)
    types.push_back({call.dtype_of(i), to_shape(call.like[i].shape)});
  return oracle_work(value_or_raise(graph_of(*call.op, call.attrs, types)));
}

}  // namespace weft::conformance

#include "conformance/gradients.h"

#include "eager/apply.h"
#include "weft/trace.h"

namespace weft::conformance {

std::vector<Tensor> gradients(const GradientCall& call, std::vector<Tensor> operands, const Tensor& seed) {
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (call.wanted(i)) operands[i].requires_grad(true);
    pointers.push_back(&operands[i]);
  }
  std::vector<Tensor> results(call.op.n_outputs), out;
  eager::apply(call.op, pointers, call.attrs, results);
  results[0].backward(seed);
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.wanted(i)) out.push_back(operands[i].grad());
  return out;
}

std::vector<Bounded> bounded_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                       const Array& seed) {
  std::vector<InputSpec> specs;
  std::vector<Bounded> inputs;
  for (const Array& a : operands)
    specs.push_back({fmt::format("x{}", specs.size()), type_of(a)}), inputs.push_back(exactly(a));
  specs.push_back({"seed", type_of(seed)}), inputs.push_back(exactly(seed));
  const Traced traced = trace(
      [&](const std::vector<Tensor>& in) { return gradients(call, {in.begin(), in.end() - 1}, in.back()); },
      specs);
  const ir::Graph graph = value_or_raise(lowered(*traced.graph));
  const auto all = bound_graph(graph, std::move(inputs));
  std::vector<Bounded> out;
  for (const auto& o : graph.outputs) out.push_back(all[static_cast<size_t>(o.value)]);
  return out;
}

}  // namespace weft::conformance

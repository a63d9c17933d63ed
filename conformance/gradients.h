#pragma once
#include <functional>

#include "conformance/bounds.h"

namespace weft::conformance {

/// One call whose gradients are wanted: those of sum(seed * output 0), of the operands that `wanted` says.
struct GradientCall {
  const ir::OpDef& op;
  const std::vector<AttrValue>& attrs;
  std::function<bool(size_t operand)> wanted;
};

/// By Tensor::backward: on tensors, or on the stand-ins of a trace. One for each wanted operand; empty where
/// none came back. Raises where the op says, when it is recorded, that it has none.
std::vector<Tensor> gradients(const GradientCall& call, std::vector<Tensor> operands, const Tensor& seed);

/// Their truth and bounds: the gradient is traced as a graph, which is then analysed like any other.
std::vector<Bounded> bounded_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                       const Array& seed);

}  // namespace weft::conformance

#pragma once
#include <functional>

#include "conformance/bounds.h"

namespace weft::conformance {

/// One call and the gradients to test: those of sum(seed * output 0) by the operands in `wanted`.
struct GradientCall {
  const ir::OpDef& op;
  const std::vector<AttrValue>& attrs;
  std::function<bool(size_t operand)> wanted;
};

/// By Tensor::backward, on tensors or in a trace. One for each wanted operand; empty if it got none. Raises
/// if the op refuses when it is recorded.
std::vector<Tensor> gradients(const GradientCall& call, std::vector<Tensor> operands, const Tensor& seed);

/// Truth and bounds: the gradient is traced as a graph and analysed like any other.
std::vector<Bounded> bounded_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                       const Array& seed);

}  // namespace weft::conformance

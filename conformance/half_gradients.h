#pragma once
#include "conformance/gradients.h"

namespace weft::conformance {

/// What the gradients of a call on f16 or bf16 should be: the rule on f32 operands, each result rounded once.
/// Only what the forward pass left behind is rounded before. It follows the rule without the tape, so that no
/// rounding of the tape's own is in the bound.
std::vector<Bounded> bounded_half_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                            const Array& seed);

/// `c` with every axis of some length made `n` long, in operands and attributes, where the op takes that and
/// no operand gets more than `most` elements.
std::optional<Case> stretched(const ir::OpDef& op, const Case& c, int64_t n, int64_t most);

}  // namespace weft::conformance

#pragma once
#include "conformance/gradients.h"

namespace weft::conformance {

/// The right gradients of a call on f16 or bf16: the rule on f32 operands, each result rounded once; only
/// results saved by the forward pass are rounded before. Computed without the tape, so the bound excludes
/// roundings of the tape.
std::vector<Bounded> bounded_half_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                            const Array& seed);

/// `c` with every axis of some length made `n` long, in operands and attributes, if the op takes that and no
/// operand gets more than `most` elements.
std::optional<Case> stretched(const ir::OpDef& op, const Case& c, int64_t n, int64_t most);

}  // namespace weft::conformance

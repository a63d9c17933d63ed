#pragma once
#include "loops/form.h"

namespace weft::loops {

/// Says why a call is not elementwise: a body (or a primitive call, which is its own one-step body) in which
/// every output element needs one element of each input.
Status check_elementwise(const weft_call& call);

/// Whether the call is one step in which every element needs one element of each operand. Not `full`.
bool is_elementwise(const weft_call& step);
/// The value of such a step, from those of its operands.
codegen::Id elementwise_step(codegen::LoopBuilder& b, const weft_call& step,
                             std::span<const codegen::Id> operands);

/// The value of `full`: value times the product of `times`.
double full_value(const weft_call& call);

/// Adds the steps of the call to `b`. `inputs` are the values of the call's inputs; gives those of its
/// outputs. A `full` becomes a scalar argument, or a number in the text when `literal`.
codegen::Ids elementwise_body(codegen::LoopBuilder& b, const weft_call& call,
                              std::span<const codegen::Id> inputs, bool literal);

}  // namespace weft::loops

#pragma once
#include "ir/graph.h"

namespace weft::ir {

/// The body of one composite call as a graph of primitive nodes: inputs are its operands (absent ones keep
/// their place), outputs its results, in order. A result that is an operand untouched is that operand.
Result<Graph> lower_to_primitives(const OpDef& op, std::span<const TensorType* const> inputs, AttrView attrs);

/// Appends the primitive nodes that mean `op` on these values; returns its results.
ValueList inline_primitives(Builder& b, const OpDef& op, Values inputs, AttrView attrs);

}  // namespace weft::ir

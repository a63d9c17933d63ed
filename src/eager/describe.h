#pragma once
#include "ir/op.h"
#include "seam/call.h"

namespace weft::eager {

/// An op call with known sizes, as kernels are asked about it. A composite op carries its body.
Result<seam::CallDesc> describe(const ir::OpDef& op, std::span<const TensorType* const> inputs,
                                std::span<const TensorType> outputs, std::span<const AttrValue> attrs);

}  // namespace weft::eager

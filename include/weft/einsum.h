#pragma once
#include <string>
#include <vector>

#include "weft/tensor.h"

namespace weft {

/// Op einsum (weft/ops.h) for any number of tensors: `einsum("bij,bjk->bik", {a, b})`.
///
/// Numerics more than eight tensors are contracted two at a time, in an order that is good but not always
/// best. Each of these steps rounds to the dtype: f16 and bf16 may overflow where the product would not.
/// Errors   invalid_argument when the equation and the shapes do not fit.
[[nodiscard]] Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors);

}  // namespace weft

#pragma once
#include <functional>
#include <vector>

#include "weft/tensor.h"

namespace weft {

/// The gradients of a function's inputs, from those of its results and from what it saved: one for each
/// input, an empty tensor where there is none. A result that no gradient flows back into has zeros.
using GradientRule = std::function<std::vector<Tensor>(const std::vector<Tensor>& gradients,
                                                       const std::vector<Tensor>& saved)>;

/// `results`, which were computed from `inputs` in a way that records nothing (under NoGrad, or by other
/// code), with a gradient of their own. `saved` is what the rule wants to see again: inputs, results and
/// others. If the rule computes with ops, it can be differentiated too, back into the inputs and results
/// among what was saved.
///
/// Where no input requires a gradient, or none is recorded, these are `results` as they are. Eager and inside
/// weft::trace.
///
/// Errors   backward: invalid_argument when the rule gives another number of gradients, or one of another
/// type
///          than its input, and when something saved was overwritten in place since.
[[nodiscard]] std::vector<Tensor> with_gradient(const std::vector<Tensor>& inputs,
                                                const std::vector<Tensor>& results,
                                                const std::vector<Tensor>& saved, GradientRule rule);

}  // namespace weft

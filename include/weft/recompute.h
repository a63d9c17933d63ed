#pragma once
#include <functional>
#include <vector>

#include "weft/tensor.h"

namespace weft {

/// A part of a model: tensors in, tensors out.
using ModelPart = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// part(inputs), of which nothing is kept for the backward pass but the inputs: it runs once more on the way
/// back. Memory for time: a chain of n such parts keeps n inputs and the insides of one part. Random states
/// that `part` updates draw the same numbers again. Eager and inside weft::trace; without gradients it is
/// part(inputs).
///
/// What `part` refers to must be there, unchanged, when the backward pass comes by.
///
/// Errors   backward: invalid_argument when an input was overwritten in place since.
/// Source   Chen et al., Training deep nets with sublinear memory cost (2016).
[[nodiscard]] std::vector<Tensor> recompute(const ModelPart& part, const std::vector<Tensor>& inputs);

/// The same, of one tensor each.
template <class F>
[[nodiscard]] Tensor recompute(const F& part, const Tensor& x) {
  return recompute(
      ModelPart([part](const std::vector<Tensor>& in) { return std::vector<Tensor>{part(in[0])}; }),
      std::vector<Tensor>{x})[0];
}

}  // namespace weft

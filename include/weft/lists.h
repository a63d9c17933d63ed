#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "weft/tensor.h"

// Ops over lists of tensors, built from weft/ops.h. They run, trace and differentiate like any other.
namespace weft {

/// Concatenates any number of tensors along one axis.
///
/// Shape    alike but for `axis`, whose sizes add up.
/// DType    any, the same for all.
/// Errors   invalid_argument for an empty list, shapes and dtypes.
[[nodiscard]] Tensor concat(std::span<const Tensor> parts, int64_t axis = 0);
[[nodiscard]] Tensor concat(std::initializer_list<Tensor> parts, int64_t axis = 0);

/// Splits `x` into pieces of these sizes along one axis: the inverse of concat.
///
/// Errors   invalid_argument unless the sizes add up to that of the axis.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t axis = 0);

/// The root of the sum of all squares of all tensors.
///
/// Shape    the result has rank 0.
/// DType    floats, not all alike; squares are summed in f32, or in f64 where one of them is.
/// Errors   invalid_argument for an empty list and dtypes.
[[nodiscard]] Tensor global_norm(std::span<const Tensor> tensors);

/// Scales one of the tensors of which this is the global norm, so that the norm is at most `max_norm`: what
/// clip_global_norm does to each, for callers that go on with one before the next.
///
/// DType    float.
/// Errors   invalid_argument for dtypes, and unless max_norm > 0.
[[nodiscard]] Tensor clip_by_norm(const Tensor& x, const Tensor& norm, double max_norm,
                                  double epsilon = 1e-6);

struct Clipped {
  std::vector<Tensor> tensors;
  Tensor norm;  ///< of all
};
/// Scales all tensors by one factor, so that the root of the sum of all their squares is at most `max_norm`.
///
/// DType    as of global_norm.
/// Errors   invalid_argument for an empty list and dtypes, and unless max_norm > 0.
/// Source   Pascanu et al., On the difficulty of training recurrent neural networks (ICML 2013).
[[nodiscard]] Clipped clip_global_norm(std::span<const Tensor> tensors, double max_norm,
                                       double epsilon = 1e-6);

}  // namespace weft

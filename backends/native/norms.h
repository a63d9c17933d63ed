#pragma once
#include <cmath>

#include "backends/native/rows.h"

// Norms of one row, for the norms and for those of sums.
namespace weft::native {

/// A row's weight and bias; null for none.
struct NormOperands {
  const float *weight, *bias;
  double epsilon;
};

/// to = x / rms(x) * weight; `to` may be x.
inline void rms_norm_row(const float* x, const NormOperands& o, float* to, int64_t n) {
  const double mean = sum_of_squares(x, 0, n) / static_cast<double>(n);
  affine(x, 0, static_cast<float>(1 / std::sqrt(mean + o.epsilon)), o.weight, nullptr, to, n);
}

/// to = (x - mean(x)) / deviation(x) * weight + bias; `to` may be x.
inline void layer_norm_row(const float* x, const NormOperands& o, float* to, int64_t n) {
  const auto mean = static_cast<float>(sum(x, n) / static_cast<double>(n));
  const double variance = sum_of_squares(x, mean, n) / static_cast<double>(n);
  affine(x, mean, static_cast<float>(1 / std::sqrt(variance + o.epsilon)), o.weight, o.bias, to, n);
}

}  // namespace weft::native

#pragma once
#include <numbers>

#include "ir/op.h"

// Shared by gelu and its gradient.
namespace weft::ir {

struct GeluAttrs {
  bool approximate = false;
  static constexpr auto fields = ir::fields("approximate", &GeluAttrs::approximate);
};

// The approximation is tanh(kGeluScale (x + kGeluCube x^3)).
inline constexpr double kGeluScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kGeluCube = 0.044715;

/// 2 P(X < x) - 1 for a normal X, or its approximation.
Value symmetric_cdf(Builder& b, Value x, bool approximate);

}  // namespace weft::ir

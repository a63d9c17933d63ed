#pragma once
#include "ops/shared/rules.h"

// Shared by rms_norm and its gradient.
namespace weft::ir {

struct RmsNormAttrs {
  double epsilon = 1e-5;
  static constexpr auto fields = ir::fields("epsilon", &RmsNormAttrs::epsilon);
};

/// mean(x) of each row, kept with size 1.
inline Value row_mean(Builder& b, Value x) {
  return b.div(b.sum(x, -1), b.full(1, {}, x.dtype(), x.shape().back()));
}
/// 1 / sqrt(mean(x * x) + epsilon), one for each row.
inline Value rms_scale(Builder& b, Value x, double epsilon) {
  return b.div(1, b.sqrt(b.add(row_mean(b, b.mul(x, x)), epsilon)));
}

}  // namespace weft::ir

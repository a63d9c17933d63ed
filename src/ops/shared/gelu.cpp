#include "ops/shared/gelu.h"

#include "ir/builder.h"

namespace weft::ir {

Value symmetric_cdf(Builder& b, Value x, bool approximate) {
  if (!approximate) return b.erf(b.mul(x, 1 / std::numbers::sqrt2));
  return b.tanh(b.mul(b.mul(x, b.add(b.mul(b.mul(x, x), kGeluCube), 1)), kGeluScale));
}

}  // namespace weft::ir

#pragma once
#include "ops/shared/rules.h"

// Shared by softmax and its gradient.
namespace weft::ir {

struct SoftmaxAttrs {
  int64_t axis = -1;
  static constexpr auto fields = ir::fields("axis", &SoftmaxAttrs::axis);
};

}  // namespace weft::ir

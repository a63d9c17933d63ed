#include "conformance/cases.h"

namespace weft::conformance {

OpCases relu_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({0, 4})}, .why = "empty"},
      {.inputs = {values({0, -0.0L, 1e-40L, -1e-40L, kInf, -kInf, kNan, 1e38L})},
       .why = "a NaN stays; zeros; subnormals",
       .no_gradient = "kink at 0"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases rsqrt_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.25, 4)}, .why = "plain"},
      {.inputs = {uniform({}, 0.5, 2)}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {values({1e-6L, 4, 10000, 0.25L})},
       .why = "small and large",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L, 1e-30L})},
       .why = "zero, below it, infinite",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

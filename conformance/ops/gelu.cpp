#include "conformance/cases.h"

namespace weft::conformance {

OpCases gelu_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {normal({4, 33})}, .attrs = {{"approximate", 1}}, .why = "the approximation"},
      {.inputs = {uniform({65}, -8, 8)}, .why = "both tails"},
      {.inputs = {uniform({65}, -8, 8)}, .attrs = {{"approximate", 1}}, .why = "both tails, approximate"},
      {.inputs = {values({1e30L, -1e30L, 3e38L, -3e38L, 65504, -65504})},
       .why = "no finite number overflows to NaN",
       .dtypes = kWideFloats,
       .no_gradient = "steps are smaller than the numbers' own"},
      {.inputs = {values({1e30L, -1e30L, 3e38L, -3e38L, 65504, -65504})},
       .attrs = {{"approximate", 1}},
       .why = "the same, approximate",
       .dtypes = kWideFloats,
       .no_gradient = "steps are smaller than the numbers' own"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "infinities",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

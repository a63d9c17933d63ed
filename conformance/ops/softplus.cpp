#include "conformance/cases.h"

namespace weft::conformance {

OpCases softplus_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {normal({4, 33})}, .attrs = {{"beta", 2.5}}, .why = "sharper"},
      {.inputs = {values({-1e4L, 1e4L, -89, 89, -20, 20, -745, 60000, -60000, 1e-8L})},
       .why = "both tails",
       .no_gradient = "sums of large numbers"},
      {.inputs = {values({1e30L, -1e30L, 3e38L, -3e38L, 65504, -65504})},
       .why = "no finite number overflows to NaN",
       .dtypes = kWideFloats,
       .no_gradient = "steps are smaller than the numbers' own"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "infinities",
       .no_gradient = "infinite"},
      {.inputs = {values({-kInf, kInf})}, .why = "both ends", .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

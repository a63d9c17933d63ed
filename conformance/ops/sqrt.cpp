#include "conformance/cases.h"

namespace weft::conformance {

OpCases sqrt_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.1, 9)}, .why = "plain"},
      {.inputs = {uniform({}, 0.5, 2)}, .why = "rank 0"},
      {.inputs = {uniform({0, 2}, 0.5, 2)}, .why = "empty"},
      {.inputs = {values({0, -0.0L, 1, 4, 2, 1e38L, 1e-38L, 65504})},
       .why = "exact squares, both ends",
       .no_gradient = "infinite slope at 0"},
      {.inputs = {values({-1, kInf, -kInf, kNan, 1e-40L, 5e-324L, 6e-8L})},
       .why = "NaN below zero, subnormals",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

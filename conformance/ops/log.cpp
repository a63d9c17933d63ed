#include "conformance/cases.h"

namespace weft::conformance {

OpCases log_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.1, 9)}, .why = "plain"},
      {.inputs = {uniform({}, 0.5, 2)}, .why = "rank 0"},
      {.inputs = {uniform({0}, 0.5, 2)}, .why = "empty"},
      {.inputs = {uniform({65}, 0.98, 1.02)}, .why = "near 1, where the result is near 0"},
      {.inputs = {values({1, 1e38L, 1e-38L, 2, 65504})}, .why = "far from 1", .no_gradient = "tiny operand"},
      {.inputs = {values({0, -0.0L, -1, kInf, -kInf, kNan, 1e-40L, 5e-324L, 6e-8L})},
       .why = "-inf at zero, NaN below, subnormals",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

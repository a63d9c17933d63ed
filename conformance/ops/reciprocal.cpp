#include "conformance/cases.h"

namespace weft::conformance {

OpCases reciprocal_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.25, 4)}, .why = "plain"},
      {.inputs = {uniform({}, 0.5, 2)}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {values({-2, 4, -0.5L, 1000})}, .why = "both signs"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "zeros of both signs",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

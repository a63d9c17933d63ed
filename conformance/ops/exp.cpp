#include "conformance/cases.h"

namespace weft::conformance {

OpCases exp_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {uniform({129}, -80, 80)},
       .why = "the whole range of f32",
       .no_gradient = "overflows in halves"},
      {.inputs = {values({0, -0.0L, 1, -1, 1e-40L, 1e-8L})}, .why = "one at zero"},
      {.inputs = {values({kInf, -kInf, kNan, 1000, -1000, 11.5L})},
       .why = "infinities, overflow, underflow",
       .no_gradient = "infinite"},
      {.inputs = {uniform({17}, -103, -88)}, .why = "subnormal results in f32", .no_gradient = "underflows"},
  };
}

}  // namespace weft::conformance

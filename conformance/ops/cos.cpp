#include "conformance/cases.h"

namespace weft::conformance {

OpCases cos_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {uniform({129}, -30, 30)}, .why = "several turns"},
      {.inputs = {values({1e3L, -12345, 1e5L, 1e-8L, 1e-40L, 65504, 1.5703125L, 4.7109375L})},
       .why = "far out, near 0, and where the cosine is small",
       .no_gradient = "steps of halves are larger than a turn"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "NaN of an infinity",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

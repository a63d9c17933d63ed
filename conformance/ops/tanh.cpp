#include "conformance/cases.h"

namespace weft::conformance {

OpCases tanh_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {uniform({65}, -12, 12)}, .why = "into both tails"},
      {.inputs = {values({1e-3L, -1e-8L, 1e-30L, 0.5L, -0.0625L, 88, -700, 30000})},
       .why = "near 0 and far out"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "odd and bounded",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

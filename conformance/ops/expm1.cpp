#include "conformance/cases.h"

namespace weft::conformance {

OpCases expm1_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {uniform({65}, -20, 11)}, .why = "both sides"},
      {.inputs = {values({1e-3L, -1e-5L, 1e-8L, -1e-8L, 1e-20L, 1e-30L, 0.5L, -40})},
       .why = "as good near 0 as elsewhere"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L, 1000, -1000})},
       .why = "infinities, overflow, underflow",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

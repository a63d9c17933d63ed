#include "conformance/cases.h"

namespace weft::conformance {

OpCases log1p_cases() {
  return {
      {.inputs = {uniform({4, 33}, -0.9, 5)}, .why = "plain"},
      {.inputs = {uniform({}, 0, 3)}, .why = "rank 0"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {values({1e-3L, -1e-5L, 1e-8L, -1e-8L, 1e-20L, 1e-30L, 0.5L, 60000, -0.9999L})},
       .why = "as good near 0 as elsewhere",
       .no_gradient = "a step leads beyond -1"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L, -2, -0.99951171875L})},
       .why = "-1 and below, infinities",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases isfinite_cases() {
  return {
      {.inputs = {values({0, kInf, 1, kNan, -kInf, 65504, 1e38L, -1e-40L, kNan, -1, 1e300L, kInf}, {3, 4})},
       .why = "every kind"},
      {.inputs = {normal({7})}, .why = "all of one kind"},
      {.inputs = {values({kNan}, {})}, .why = "rank 0"},
      {.inputs = {normal({0})}, .why = "empty"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases transpose_cases() {
  const auto axes = [](int64_t a, int64_t b) -> std::vector<Attr> { return {{"axis_a", a}, {"axis_b", b}}; };
  return {
      {.inputs = {normal({2, 3, 5})}, .why = "the last two by default"},
      {.inputs = {normal({2, 3, 5})}, .attrs = axes(0, -1), .why = "first and last"},
      {.inputs = {normal({2, 3, 5, 2})}, .attrs = axes(2, 1), .why = "the middle ones"},
      {.inputs = {normal({4})}, .attrs = axes(0, 0), .why = "an axis with itself"},
      {.inputs = {normal({3, 0})}, .why = "empty"},
      {.inputs = {values({kNan, -0.0L, -kInf, 1e-40L}, {2, 2})},
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

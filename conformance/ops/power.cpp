#include "conformance/cases.h"

namespace weft::conformance {

OpCases power_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.25, 3), normal({4, 33})}, .why = "a positive base"},
      {.inputs = {normal({2, 1, 5}), integers({3, 1}, 1, 3)},
       .why = "both sides broadcast; whole powers of either sign of base",
       .dtypes = only({DType::f32, DType::f64}),
       .no_gradient = "the exponent has a slope for a positive base only"},
      {.inputs = {uniform({2, 1, 5}, 0.5, 2), uniform({3, 1}, -2, 2)},
       .why = "both sides broadcast",
       .dtypes = only({DType::f32, DType::f64})},
      {.inputs = {uniform({}, 0.5, 2), normal({7})},
       .why = "rank 0 on the left",
       .dtypes = only({DType::f32})},
      {.inputs = {uniform({7}, 0.5, 2), values({2}, {})}, .why = "a square"},
      {.inputs = {normal({0, 3}), normal({3})}, .why = "empty"},
      {.inputs = {values({0, 0, 0, -0.0L, -2, -2, -2, 2, kNan, 1, kInf, -kInf, kInf, 0.5L, -1}),
                  values({0, 2, -1, -3, 3, -2, 0.5L, kNan, 0, kNan, -1, 3, 0, kInf, kInf})},
       .why = "the special values of C's pow",
       .no_gradient = "infinite"},
      {.inputs = {values({10, 10, 2, 1e-10L, 200, 0.9990234375L}), values({30, -30, -149, 4, 2, 1000})},
       .why = "overflow and underflow",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

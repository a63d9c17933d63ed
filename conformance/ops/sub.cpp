#include "conformance/cases.h"

namespace weft::conformance {

OpCases sub_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33})}, .why = "same shapes, odd row"},
      {.inputs = {normal({2, 1, 5}), normal({3, 1})}, .why = "both sides broadcast, ranks differ"},
      {.inputs = {normal({}), normal({7})}, .why = "rank 0 on the left"},
      {.inputs = {normal({1, 7}), normal({})}, .why = "rank 0 on the right"},
      {.inputs = {normal({}), normal({})}, .why = "both rank 0"},
      {.inputs = {normal({0, 3}), normal({3})}, .why = "empty"},
      {.inputs = {integers({5, 7}, -9, 9), integers({5, 7}, -9, 9)},
       .why = "small integers: exact",
       .no_gradient = "may divide by zero"},
      {.inputs = {values({kInf, -kInf, kInf, kNan, 0, -0.0L, 1e38L, 65504}),
                  values({1, kInf, -kInf, 1, -0.0L, -0.0L, 1e38L, 65504})},
       .why = "infinities, NaN, zeros of both signs, overflow",
       .no_gradient = "infinite"},
      {.inputs = {values({1e-40L, 6e-8L, 5e-324L, 3e-39L}), values({1e-41L, 6e-8L, 5e-324L, -1e-39L})},
       .why = "subnormal in f32, bf16, f16 and f64",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({2147483647, -2147483648.0L, 4294967295, 9223372036854775807,
                          -9223372036854775807LL - 1}),
                  values({2, -1, 3, 9223372036854775807, -1})},
       .why = "integers wrap around",
       .no_gradient = "halves overflow"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases minimum_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33})}, .why = "same shapes, odd row"},
      {.inputs = {normal({2, 1, 5}), normal({3, 1})},
       .why = "both sides broadcast, ranks differ",
       .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {normal({}), normal({7})},
       .why = "rank 0 on the left",
       .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {normal({0, 3}), normal({3})}, .why = "empty"},
      {.inputs = {integers({5, 7}, -9, 9), integers({5, 7}, -9, 9)},
       .why = "small integers: exact",
       .no_gradient = "ties: kinks"},
      {.inputs = {values({kInf, -kInf, kNan, 1, kNan, -0.0L, 1e-40L, 5}),
                  values({1, 1, 1, kNan, kInf, 0, 2e-40L, -5})},
       .why = "a NaN on either side wins; subnormals",
       .no_gradient = "infinite"},
      {.inputs = {values({9223372036854775807, 9007199254740993, -9223372036854775807LL, 4294967295}),
                  values({9223372036854775806, 9007199254740992, 1, -1})},
       .why = "integers beyond what a double holds, and the sign bit",
       .no_gradient = "steps are larger than the numbers"},
  };
}

}  // namespace weft::conformance

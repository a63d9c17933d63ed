#include "conformance/cases.h"

namespace weft::conformance {

OpCases mod_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0.25, 0.75), uniform({4, 33}, 1, 3)}, .why = "below the divisor"},
      {.inputs = {values({5.5L, -5.5L, 5.5L, -5.5L, 7.25L, -0.75L, 100.5L}),
                  values({2, 2, -2, -2, 0.75L, 4, 7})},
       .why = "the sign of the divisor"},
      {.inputs = {uniform({2, 1, 5}, -30, 30), uniform({3, 1}, 1, 4)},
       .why = "both sides broadcast, ranks differ",
       .dtypes = only({DType::f32, DType::i32}),
       .no_gradient = "jumps"},
      {.inputs = {normal({}), uniform({7}, 1, 4)},
       .why = "rank 0 on the left",
       .dtypes = only({DType::f32, DType::i32}),
       .no_gradient = "jumps"},
      {.inputs = {normal({7}), uniform({}, 1, 4)},
       .why = "rank 0 on the right",
       .dtypes = only({DType::f32, DType::i32}),
       .no_gradient = "jumps"},
      {.inputs = {normal({0, 3}), uniform({3}, 1, 4)}, .why = "empty"},
      {.inputs = {integers({5, 7}, -20, 20), integers({5, 7}, -9, 9)},
       .why = "small integers: exact; x mod 0 is 0 for them",
       .no_gradient = "jumps"},
      {.inputs = {values({kInf, 1, -1, kNan, 0, -0.0L, 5, 1e30L}), values({2, kInf, kInf, 1, 3, 3, 0, 7})},
       .why = "infinities, NaN, zeros",
       .no_gradient = "infinite"},
      {.inputs = {values({2147483647, -2147483648.0L, 4294967295, 9223372036854775807,
                          -9223372036854775807LL - 1, -7}),
                  values({-2, -1, 10, 1000, -1, 18446744073709551615ULL})},
       .why = "the least integer over -1; large ones",
       .dtypes = only({DType::i32, DType::i64, DType::u32, DType::u64}),
       .no_gradient = "steps are larger than the numbers"},
  };
}

}  // namespace weft::conformance

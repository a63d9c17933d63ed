#include "conformance/cases.h"

namespace weft::conformance {

OpCases sign_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain", .no_gradient = "jumps"},
      {.inputs = {values({-2.5L, 3, 0.75L})}, .why = "away from the jump"},
      {.inputs = {normal({})}, .why = "rank 0", .no_gradient = "jumps"},
      {.inputs = {normal({2, 0})}, .why = "empty"},
      {.inputs = {values(
           {2147483647, -2147483648.0L, 4294967295, 9223372036854775807, -9223372036854775807LL - 1, -1})},
       .why = "the least and largest integers",
       .dtypes = only({DType::i32, DType::i64, DType::u32, DType::u64})},
      {.inputs = {integers({17}, -9, 9)}, .why = "small integers: exact", .no_gradient = "jumps"},
      {.inputs = {values({0, -0.0L, kInf, -kInf, kNan, 1, -1, 1e-40L})},
       .why = "a NaN stays",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

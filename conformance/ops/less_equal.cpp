#include "conformance/cases.h"

namespace weft::conformance {

OpCases less_equal_cases() {
  return {
      {.inputs = {integers({4, 33}, -2, 2), integers({4, 33}, -2, 2)}, .why = "many ties"},
      {.inputs = {integers({2, 1, 5}, 0, 3), integers({3, 1}, 0, 3)},
       .why = "both sides broadcast",
       .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {normal({3, 0}), normal({1})}, .why = "empty"},
      {.inputs = {values({kNan, 1, kNan, kInf, -kInf, 0, -0.0L, 2, 1}),
                  values({kNan, kNan, 1, kInf, kInf, -0.0L, 0, 1, 2})},
       .why = "a NaN is neither; the zeros are equal"},
      {.inputs = {values({9007199254740993, 4294967295, 18446744073709551615ULL, -1}),
                  values({9007199254740992, 4294967294, 9223372036854775807, 1})},
       .why = "integers beyond what a double holds, and the sign bit"},
  };
}

}  // namespace weft::conformance

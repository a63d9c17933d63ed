#include "conformance/cases.h"

namespace weft::conformance {

OpCases shift_right_cases() {
  return {
      {.inputs = {integers({4, 33}, -99, 99), integers({4, 33}, 0, 9)}, .why = "same shapes"},
      {.inputs = {integers({2, 1, 5}, 1, 99), integers({3, 1}, 0, 9)},
       .why = "both sides broadcast",
       .dtypes = only({DType::i32})},
      {.inputs = {integers({}, 1, 99), integers({7}, 0, 9)}, .why = "rank 0", .dtypes = only({DType::i32})},
      {.inputs = {normal({3, 0}), normal({1})}, .why = "empty", .dtypes = only({DType::i32})},
      {.inputs = {values({5, -5, 5, -5, 5, -5, 5, -5, 2147483647, -2147483648.0L, 4294967295,
                          9223372036854775807, -9223372036854775807LL - 1, -1}),
                  values({31, 31, 32, 32, 63, 63, 64, 64, 1, 1, 31, 33, 33, -1})},
       .why = "amounts up to the width, beyond it, and below 0"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases bit_xor_cases() {
  return {
      {.inputs = {integers({4, 33}, -99, 99), integers({4, 33}, -99, 99)}, .why = "same shapes"},
      {.inputs = {integers({2, 1, 5}, 0, 99), integers({3, 1}, 0, 9)},
       .why = "both sides broadcast",
       .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {integers({}, 0, 99), integers({7}, 0, 99)},
       .why = "rank 0",
       .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {normal({3, 0}), normal({1})}, .why = "empty", .dtypes = only({DType::f32, DType::i32})},
      {.inputs = {values({0x0f0f0f0f, -1, 5, 9223372036854775807, -9223372036854775807LL - 1, 4294967295, 12,
                          0}),
                  values({0x00ffff00, 3, -1, 9007199254740993, -1, 9223372036854775807, 10, -1})},
       .why = "every bit, and the sign"},
  };
}

}  // namespace weft::conformance

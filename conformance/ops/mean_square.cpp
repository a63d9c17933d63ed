#include "conformance/cases.h"

namespace weft::conformance {

OpCases mean_square_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {integers({3, 5}, -9, 9)}, .why = "small integers"},
      {.inputs = {normal({0})}, .why = "of nothing: 0 / 0", .no_gradient = "NaN"},
      {.inputs = {values({1e-30L, 1e-25L})},
       .why = "squares underflow in f32",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({kInf, 1})}, .why = "infinity", .no_gradient = "infinite"},
      {.inputs = {constant({3}, 1e30)},
       .why = "squares overflow in f32",
       .no_gradient = "infinite in halves"},
      {.inputs = {normal({70, 140})}, .why = "more than a block takes", .no_gradient = "as of few"},
  };
}

}  // namespace weft::conformance

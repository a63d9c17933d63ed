#include "conformance/cases.h"

namespace weft::conformance {

OpCases assign_rows_cases() {
  return {
      {.inputs = {normal({2, 3, 5, 4}), values({4, 0, 2, 2}).as(DType::i64), normal({2, 3, 4, 4})},
       .attrs = {{"axis", 2}},
       .why = "a cache, one row twice"},
      {.inputs = {normal({3, 5, 2}), values({4, 0, 1, 1, 3, 3}, {3, 2}).as(DType::i32), normal({3, 2, 2})},
       .attrs = {{"axis", -2}, {"batch", 1}},
       .why = "places for each sequence; axis counted from the end"},
      {.inputs = {normal({4, 2}), values({2}, {}).as(DType::i64), normal({2})}, .why = "one row"},
      {.inputs = {normal({4, 2}), values({}).as(DType::i32), normal({0, 2})}, .why = "no rows"},
      {.inputs = {integers({3, 2}, -9, 9), values({1, 1, 0}).as(DType::i32), integers({3, 2}, -9, 9)},
       .why = "small integers: exact"},
      {.inputs = {values({kInf, -0.0L, 2, 1e-40L}), values({0, 1}).as(DType::i32), values({-0.0L, kNan})},
       .why = "bits stay"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases embedding_cases() {
  return {
      {.inputs = {normal({5, 3}), values({4, 0, 2, 2}).as(DType::i32)}, .why = "rows, one twice"},
      {.inputs = {normal({5, 3}), values({4, 0, 2, 1, 1, 3}, {2, 3}).as(DType::i64)},
       .why = "ids of rank 2, i64"},
      {.inputs = {normal({5, 2, 2}), values({4, 1, 4}).as(DType::i32)}, .why = "rows of rank 2"},
      {.inputs = {normal({5, 16}), values({4, 0, 4}).as(DType::i64)}, .why = "rows of 16"},
      {.inputs = {normal({5, 3}), values({}).as(DType::i32)}, .why = "no ids"},
      {.inputs = {normal({5, 3}), values({1, 2, 4}).as(DType::i32)},
       .attrs = {{"padding_idx", 0}},
       .why = "padding that is not there"},
      {.inputs = {normal({5, 3}), values({1, 2, 1}).as(DType::i32)},
       .attrs = {{"padding_idx", 1}},
       .why = "the row of the padding is read as any other",
       .no_gradient = "its gradient is zero by definition: tests/gradients_test.cpp"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases prod_cases() {
  return {
      {.inputs = {normal({4, 7})}, .why = "all axes by default"},
      {.inputs = {normal({4, 9})}, .attrs = {{"axes", Shape{1}}}, .why = "last axis"},
      {.inputs = {normal({4, 9})}, .attrs = {{"axes", Shape{0}}, {"keep", 1}}, .why = "first axis, kept"},
      {.inputs = {normal({2, 3, 5})}, .attrs = {{"axes", Shape{-1, 0}}}, .why = "two axes, unordered"},
      {.inputs = {normal({2, 3, 2, 3, 2})}, .attrs = {{"axes", Shape{1, 3}}}, .why = "axes that alternate"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({3, 1})}, .attrs = {{"axes", Shape{1}}}, .why = "an axis of size 1"},
      {.inputs = {normal({3, 0})}, .attrs = {{"axes", Shape{1}}}, .why = "of nothing: 1"},
      {.inputs = {normal({0, 3})}, .attrs = {{"axes", Shape{1}}}, .why = "empty result"},
      {.inputs = {integers({6, 4}, -3, 3)}, .attrs = {{"axes", Shape{1}}}, .why = "small integers: exact"},
      {.inputs = {values({2, 0, 3, 0, 5, 0, 7, 1, 1, 2, 3, 4}, {3, 4})},
       .attrs = {{"axes", Shape{1}}},
       .why = "two zeros, one zero, none: derivatives of every order"},
      {.inputs = {values({1, kInf, -1, -kInf, kInf, 0, kNan, 5, -kInf, -kInf}, {5, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
      {.inputs = {values({1e-30L, 1e-30L, 3, 3e38L, 7, 1e5L}, {2, 3})},
       .attrs = {{"axes", Shape{1}}},
       .why = "out of the range of f32 at either end",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({65536, 65537, -2147483648.0L, -1, 4294967295, 3}, {3, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "integers wrap around",
       .dtypes = only({DType::i32, DType::u32, DType::i64, DType::u64})},
  };
}

}  // namespace weft::conformance

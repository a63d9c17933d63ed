#include "conformance/cases.h"

namespace weft::conformance {

OpCases sum_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "all axes by default"},
      {.inputs = {normal({4, 33})}, .attrs = {{"axes", Shape{1}}}, .why = "last axis"},
      {.inputs = {normal({4, 33})}, .attrs = {{"axes", Shape{0}}, {"keep", 1}}, .why = "first axis, kept"},
      {.inputs = {normal({2, 3, 5})}, .attrs = {{"axes", Shape{1}}}, .why = "middle axis"},
      {.inputs = {normal({2, 3, 5})},
       .attrs = {{"axes", Shape{-1, 0}}},
       .why = "two axes, one negative, unordered"},
      {.inputs = {normal({2, 3, 5})}, .attrs = {{"keep", 1}}, .why = "all axes, kept"},
      {.inputs = {normal({2, 3, 2, 3, 2})}, .attrs = {{"axes", Shape{1, 3}}}, .why = "axes that alternate"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({3, 1})}, .attrs = {{"axes", Shape{1}}}, .why = "an axis of size 1"},
      {.inputs = {normal({3, 0})}, .attrs = {{"axes", Shape{1}}}, .why = "of nothing"},
      {.inputs = {normal({0, 3})}, .attrs = {{"axes", Shape{1}}}, .why = "empty result"},
      {.inputs = {integers({6, 9}, -50, 50)}, .attrs = {{"axes", Shape{1}}}, .why = "small integers: exact"},
      {.inputs = {values({1, kInf, -1, -kInf, kInf, -kInf, kNan, 5, -kInf, -kInf}, {5, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
      {.inputs = {values({1e-40L, -3e-40L, 5e-324L, 6e-8L, -1e-39L, 2e-40L}, {2, 3})},
       .attrs = {{"axes", Shape{1}}},
       .why = "subnormals",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({1, 1e4L, -1e4L, 1, 3e4L, -3e4L, 1, 1}, {2, 4})},
       .attrs = {{"axes", Shape{1}}},
       .why = "cancellation: the bound follows the terms, not the result"},
      {.inputs = {constant({300}, 1)}, .why = "more ones than bf16 can count one by one"},
      {.inputs = {values({2147483647, 1, -2147483648.0L, -1, 4294967295, 7}, {3, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "integers wrap around"},
      {.inputs = {normal({70, 40})},
       .attrs = {{"axes", Shape{0}}},
       .why = "many rows",
       .no_gradient = "as of few"},
      {.inputs = {normal({3, 50, 33})},
       .attrs = {{"axes", Shape{0, 1}}},
       .why = "rows of two axes",
       .no_gradient = "as of few"},
      {.inputs = {normal({300, 600})},
       .attrs = {{"axes", Shape{0}}, {"keep", 1}},
       .why = "tiles of columns",
       .no_gradient = "as of few"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases max_cases() {
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
      {.inputs = {integers({6, 9}, -50, 50)},
       .attrs = {{"axes", Shape{1}}},
       .why = "small integers: exact",
       .no_gradient = "ties: kinks"},
      {.inputs = {values({1, kInf, -1, -kInf, kInf, -kInf, kNan, 5, -kInf, -kInf}, {5, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
      {.inputs = {values({1, -kNan, 2, -1, 3, -kNan, -kNan, 4}, {4, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "NaN with a sign",
       .no_gradient = "NaN"},
      {.inputs = {values({1e-40L, -3e-40L, 5e-324L, 6e-8L, -1e-39L, 2e-40L}, {2, 3})},
       .attrs = {{"axes", Shape{1}}},
       .why = "subnormals",
       .no_gradient = "steps are larger than the numbers"},
      {.inputs = {values({-5, -3, -7, -kInf}, {2, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "all negative",
       .no_gradient = "infinite"},
      {.inputs = {values({9223372036854775807, 9007199254740993, -9223372036854775807LL, -9007199254740993LL},
                         {2, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "integers beyond what a double holds"},
  };
}

}  // namespace weft::conformance

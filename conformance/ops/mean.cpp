#include "conformance/cases.h"

namespace weft::conformance {

OpCases mean_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "all axes by default"},
      {.inputs = {normal({4, 33})}, .attrs = {{"axes", Shape{1}}}, .why = "last axis"},
      {.inputs = {normal({2, 3, 5})},
       .attrs = {{"axes", Shape{-1, 0}}, {"keep", 1}},
       .why = "two axes, kept"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {integers({6, 8}, -9, 9)}, .attrs = {{"axes", Shape{0}}}, .why = "small integers"},
      {.inputs = {constant({300}, 1)}, .why = "more ones than bf16 can count one by one"},
      {.inputs = {normal({0, 3})},
       .attrs = {{"axes", Shape{0}}},
       .why = "of nothing: 0 / 0",
       .no_gradient = "NaN"},
      {.inputs = {values({kInf, 1, kNan, 2, -kInf, kInf}, {3, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

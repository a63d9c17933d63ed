#include "conformance/cases.h"

namespace weft::conformance {

OpCases logsumexp_cases() {
  return {
      {.inputs = {normal({4, 9})}, .why = "all axes by default"},
      {.inputs = {normal({4, 33})}, .attrs = {{"axes", Shape{1}}}, .why = "last axis"},
      {.inputs = {normal({2, 3, 5})},
       .attrs = {{"axes", Shape{-1, 0}}, {"keep", 1}},
       .why = "two axes, kept"},
      {.inputs = {normal({})}, .why = "rank 0: as it was"},
      {.inputs = {normal({3, 0})}, .attrs = {{"axes", Shape{1}}}, .why = "of nothing: -infinity"},
      {.inputs = {values({1000, 999, 998, -1000, -1001, -1000}, {2, 3})},
       .attrs = {{"axes", Shape{1}}},
       .why = "no finite input overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {values({-kInf, -kInf, kInf, 1, -kInf, 2, kInf, kInf, kNan, 1}, {5, 2})},
       .attrs = {{"axes", Shape{1}}},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

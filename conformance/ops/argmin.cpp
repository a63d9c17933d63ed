#include "conformance/cases.h"

namespace weft::conformance {

OpCases argmin_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "last axis by default"},
      {.inputs = {normal({4, 33})}, .attrs = {{"axis", 0}, {"keep", 1}}, .why = "first axis, kept"},
      {.inputs = {normal({2, 5, 3})}, .attrs = {{"axis", -2}}, .why = "middle axis, counted from the end"},
      {.inputs = {normal({7})}, .attrs = {{"axis", 0}}, .why = "rank 1"},
      {.inputs = {normal({3, 1})}, .why = "an axis of size 1"},
      {.inputs = {normal({0, 3})}, .why = "empty result"},
      {.inputs = {integers({6, 9}, -2, 2)}, .why = "ties: the first"},
      {.inputs = {values({1, kNan, 9, kNan, kInf, kInf, 2, 1, -kInf, -kInf, -kInf, 0}, {4, 3})},
       .why = "infinities; a NaN wins, the first of them"},
      {.inputs = {values({-0.0L, 0, 0, -0.0L}, {2, 2})}, .why = "zeros are equal, whatever their signs"},
      {.inputs = {values({9007199254740992, 9007199254740993, 9223372036854775807, -9223372036854775807LL},
                         {2, 2})},
       .why = "integers that differ beyond what a double holds"},
  };
}

}  // namespace weft::conformance

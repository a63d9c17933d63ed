#include "conformance/cases.h"

namespace weft::conformance {

OpCases log_softmax_cases() {
  return {
      {.inputs = {normal({4, 33})}, .why = "last axis by default"},
      {.inputs = {normal({2, 3, 5})}, .attrs = {{"axis", 1}}, .why = "strided axis"},
      {.inputs = {normal({6, 4})}, .attrs = {{"axis", 0}}, .why = "first axis"},
      {.inputs = {values({1000, 999, -1000, 0, -1000, 1000}, {2, 3})},
       .why = "probabilities that underflow",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({3, 0})}, .why = "empty row"},
      {.inputs = {normal({0, 3})}, .why = "no rows"},
      {.inputs = {normal({5, 1})}, .why = "rows of one: zeros"},
      {.inputs = {values({-kInf, 0, 1, 2, -kInf, 3, kNan, 1, 2}, {3, 3})},
       .why = "a masked element is -infinity; a NaN spoils its row",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

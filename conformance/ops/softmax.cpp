#include "conformance/cases.h"

namespace weft::conformance {

OpCases softmax_cases() {
  return {
      {.inputs = {normal({4, 33})}, .attrs = {{"axis", -1}}, .why = "plain"},
      {.inputs = {normal({2, 3, 5})}, .attrs = {{"axis", 1}}, .why = "strided axis"},
      {.inputs = {normal({6, 4})}, .attrs = {{"axis", 0}}, .why = "first axis"},
      {.inputs = {constant({2, 8}, -1e38)},
       .attrs = {{"axis", -1}},
       .why = "no 0/0",
       .no_gradient = "infinite in halves"},
      {.inputs = {values({3e38L, -3e38L, 0, 1000, 999, -1000}, {2, 3})},
       .why = "no finite input overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({3, 0})}, .attrs = {{"axis", -1}}, .why = "empty row"},
      {.inputs = {normal({0, 3})}, .attrs = {{"axis", 1}}, .why = "no rows"},
      {.inputs = {normal({5, 1})}, .why = "rows of one: ones"},
      {.inputs = {values({-kInf, 0, 1, 2, -kInf, 3, kNan, 1, 2}, {3, 3})},
       .why = "a masked element is 0; a NaN spoils its row",
       .no_gradient = "infinite"},
      {.inputs = {normal({3, 520})}, .why = "rows of 520", .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 1027})}, .why = "rows of 1,027", .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200})}, .why = "rows of 2,200", .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 8600})}, .why = "rows of 8,600", .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 33000})}, .why = "rows of 33,000", .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 131072})}, .why = "a row of 131,072", .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases softmax_grad_cases() {
  return {
      {.inputs = {uniform({4, 33}, 0, 1), normal({4, 33})}, .attrs = {{"axis", -1}}, .why = "plain"},
      {.inputs = {uniform({2, 3, 5}, 0, 1), normal({2, 3, 5})},
       .attrs = {{"axis", 1}},
       .why = "strided axis"},
      {.inputs = {uniform({6, 4}, 0, 1), normal({6, 4})}, .attrs = {{"axis", 0}}, .why = "first axis"},
      {.inputs = {normal({3, 0}), normal({3, 0})}, .why = "empty rows"},
      {.inputs = {normal({0, 3}), normal({0, 3})}, .attrs = {{"axis", 1}}, .why = "no rows"},
      {.inputs = {constant({5, 1}, 1), normal({5, 1})}, .why = "rows of one: zeros"},
      {.inputs = {values({1, 0, 0, 0.5L, 0.5L, 0}, {2, 3}), normal({2, 3})},
       .why = "probabilities of 0 and 1"},
      {.inputs = {uniform({3, 520}, 0, 0.01), normal({3, 520})},
       .why = "rows of 520",
       .no_gradient = "as of short rows"},
      {.inputs = {uniform({2, 1027}, 0, 0.01), normal({2, 1027})},
       .why = "rows of 1,027",
       .no_gradient = "as of short rows"},
      {.inputs = {uniform({2, 2200}, 0, 0.01), normal({2, 2200})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {uniform({1, 8600}, 0, 0.01), normal({1, 8600})},
       .why = "rows of 8,600",
       .no_gradient = "as of short rows"},
      {.inputs = {uniform({1, 33000}, 0, 0.01), normal({1, 33000})},
       .why = "rows of 33,000",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

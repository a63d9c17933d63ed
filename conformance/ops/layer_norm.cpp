#include "conformance/cases.h"

namespace weft::conformance {

OpCases layer_norm_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({33}), normal({33})}, .attrs = {{"epsilon", 1e-3}}, .why = "plain"},
      {.inputs = {normal({2, 3, 5}), normal({3, 5}), normal({3, 5})},
       .attrs = {{"trailing", 2}},
       .why = "two axes together"},
      {.inputs = {normal({2, 3, 5})}, .why = "neither weight nor bias"},
      {.inputs = {normal({2, 3, 5}), normal({5})}, .why = "no bias"},
      {.inputs = {uniform({2, 9}, 1000, 1001), normal({9}), normal({9})}, .why = "a large mean"},
      {.inputs = {normal({3, 0}), normal({0}), normal({0})}, .why = "empty rows"},
      {.inputs = {normal({0, 3}), normal({3}), normal({3})}, .why = "no rows"},
      {.inputs = {constant({2, 4}, 3), normal({4}), normal({4})},
       .why = "no variance: the bias",
       .no_gradient = "too curved for the step"},
      {.inputs = {normal({2, 4}), normal({4}), normal({4})},
       .attrs = {{"epsilon", 1.25}},
       .why = "an epsilon as large as the variance"},
      {.inputs = {normal({3, 520}), normal({520}), normal({520})},
       .why = "rows of 520",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 1027}), normal({1027}), normal({1027})},
       .why = "rows of 1,027",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200}), normal({2200}), normal({2200})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 8600}), normal({8600}), normal({8600})},
       .why = "rows of 8,600",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 131072}), normal({131072}), normal({131072})},
       .why = "a row of 131,072",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

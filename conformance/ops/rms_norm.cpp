#include "conformance/cases.h"

namespace weft::conformance {

OpCases rms_norm_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({33})}, .attrs = {{"epsilon", 1e-3}}, .why = "plain"},
      {.inputs = {normal({2, 3, 5}), normal({5})}, .why = "three axes"},
      {.inputs = {normal({3, 0}), normal({0})}, .why = "empty rows"},
      {.inputs = {normal({2, 4}), normal({4})},
       .attrs = {{"epsilon", 1.25}},
       .why = "an epsilon as large as the variance"},
      {.inputs = {normal({3, 520}), normal({520})}, .why = "rows of 520", .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 1027}), normal({1027})},
       .why = "rows of 1,027",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200}), normal({2200})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 8600}), normal({8600})},
       .why = "rows of 8,600",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 131072}), normal({131072})},
       .why = "a row of 131,072",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

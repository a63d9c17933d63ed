#include "conformance/cases.h"

namespace weft::conformance {

OpCases layer_norm_grad_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33}), normal({33})},
       .attrs = {{"epsilon", 1e-3}},
       .why = "plain"},
      {.inputs = {normal({2, 3, 5}), normal({2, 3, 5}), normal({3, 5})},
       .attrs = {{"trailing", 2}},
       .why = "two axes together"},
      {.inputs = {normal({2, 3, 5}), normal({2, 3, 5})}, .why = "no weight"},
      {.inputs = {normal({150, 3}), normal({150, 3}), normal({3})}, .why = "more than one block of rows"},
      {.inputs = {uniform({2, 9}, 100, 101), normal({2, 9}), normal({9})}, .why = "a large mean"},
      {.inputs = {normal({3, 0}), normal({3, 0}), normal({0})}, .why = "empty rows"},
      {.inputs = {normal({0, 3}), normal({0, 3}), normal({3})}, .why = "no rows: zeros"},
      {.inputs = {normal({2, 4}), normal({2, 4}), normal({4})},
       .attrs = {{"epsilon", 1.25}},
       .why = "an epsilon as large as the variance"},
      {.inputs = {normal({3, 520}), normal({3, 520}), normal({520})},
       .why = "rows of 520",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 1027}), normal({2, 1027}), normal({1027})},
       .why = "rows of 1,027",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200}), normal({2, 2200}), normal({2200})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 3001}), normal({2, 3001}), normal({3001})},
       .why = "rows of 3,001",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 8000}), normal({2, 8000}), normal({8000})},
       .why = "rows of 8,000",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

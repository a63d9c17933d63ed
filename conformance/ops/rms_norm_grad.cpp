#include "conformance/cases.h"

namespace weft::conformance {

OpCases rms_norm_grad_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33}), normal({33})},
       .attrs = {{"epsilon", 1e-3}},
       .why = "plain"},
      {.inputs = {normal({2, 3, 5}), normal({2, 3, 5}), normal({5})}, .why = "three axes"},
      {.inputs = {normal({150, 3}), normal({150, 3}), normal({3})}, .why = "more than one block of rows"},
      {.inputs = {normal({3, 0}), normal({3, 0}), normal({0})}, .why = "empty rows"},
      {.inputs = {normal({0, 3}), normal({0, 3}), normal({3})}, .why = "no rows: zeros"},
      {.inputs = {normal({2, 4}), normal({2, 4}), normal({4})},
       .attrs = {{"epsilon", 1.25}},
       .why = "an epsilon as large as the mean square"},
  };
}

}  // namespace weft::conformance

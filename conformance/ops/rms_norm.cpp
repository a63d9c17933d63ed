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
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases self_attention_1h_cases() {
  return {
      {.inputs = {normal({4, 3}), normal({3, 6}), normal({2, 3})}, .why = "one sequence"},
      {.inputs = {normal({2, 3, 4}), normal({4, 12}), normal({4, 2})},
       .attrs = {{"causal", 0}, {"scale", 0.25}},
       .why = "a batch, all see all, another scale"},
      {.inputs = {normal({0, 3}), normal({3, 6}), normal({2, 3})}, .why = "nothing"},
      {.inputs = {normal({1, 4}), normal({4, 6}), normal({2, 3})}, .why = "one token"},
  };
}

}  // namespace weft::conformance

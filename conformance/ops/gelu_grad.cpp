#include "conformance/cases.h"

namespace weft::conformance {

OpCases gelu_grad_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({}), normal({})}, .why = "rank 0"},
      {.inputs = {normal({2, 0}), normal({2, 0})}, .why = "empty"},
      {.inputs = {normal({4, 33}), normal({4, 33})},
       .attrs = {{"approximate", 1}},
       .why = "the approximation"},
      {.inputs = {uniform({65}, -8, 8), normal({65})}, .why = "both tails"},
      {.inputs = {uniform({65}, -8, 8), normal({65})},
       .attrs = {{"approximate", 1}},
       .why = "both tails, approximate"},
  };
}

}  // namespace weft::conformance

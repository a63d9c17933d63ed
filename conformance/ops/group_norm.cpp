#include "conformance/cases.h"

namespace weft::conformance {

OpCases group_norm_cases() {
  return {
      {.inputs = {normal({2, 6, 5}), normal({6}), normal({6})},
       .attrs = {{"groups", 3}, {"epsilon", 1e-3}},
       .why = "three groups of two channels"},
      {.inputs = {normal({2, 4, 3, 2}), normal({4}), normal({4})},
       .attrs = {{"groups", 4}},
       .why = "a group a channel: instance norm"},
      {.inputs = {normal({2, 3, 4})}, .why = "one group, neither weight nor bias"},
      {.inputs = {normal({3, 12}), normal({12})}, .attrs = {{"groups", 2}}, .why = "no axes behind, no bias"},
      {.inputs = {normal({0, 4, 3}), normal({4}), normal({4})},
       .attrs = {{"groups", 2}},
       .why = "no samples"},
      {.inputs = {normal({2, 4, 2}), normal({4}), normal({4})},
       .attrs = {{"groups", 2}, {"epsilon", 1.25}},
       .why = "an epsilon as large as the variance"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases batch_norm_cases() {
  return {
      {.inputs = {normal({3, 4, 5}), normal({4}), uniform({4}, 0.5, 2), normal({4}), normal({4})},
       .attrs = {{"epsilon", 1e-3}},
       .why = "plain"},
      {.inputs = {normal({2, 3, 2, 2}), normal({3}), uniform({3}, 0.5, 2)}, .why = "neither weight nor bias"},
      {.inputs = {normal({5, 3}), normal({3}), uniform({3}, 0.5, 2), normal({3})}, .why = "no bias"},
      {.inputs = {normal({0, 3}), normal({3}), uniform({3}, 0.5, 2)}, .why = "no samples"},
      {.inputs = {normal({2, 4, 2}), normal({4}), constant({4}, 1), normal({4}), normal({4})},
       .attrs = {{"epsilon", 1.25}},
       .why = "an epsilon as large as the variance"},
  };
}

}  // namespace weft::conformance

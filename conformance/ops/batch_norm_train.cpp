#include "conformance/cases.h"

namespace weft::conformance {

OpCases batch_norm_train_cases() {
  return {
      {.inputs = {normal({3, 4, 5}), normal({4}), uniform({4}, 0.5, 2), normal({4}), normal({4})},
       .attrs = {{"epsilon", 1e-3}, {"momentum", 0.25}},
       .why = "plain"},
      {.inputs = {normal({2, 3, 2, 2}), normal({3}), uniform({3}, 0.5, 2)}, .why = "neither weight nor bias"},
      {.inputs = {normal({5, 3}), normal({3}), uniform({3}, 0.5, 2), normal({3})}, .why = "no bias"},
      {.inputs = {uniform({9, 2}, 1000, 1001), normal({2}), uniform({2}, 0.5, 2), normal({2}), normal({2})},
       .why = "a large mean"},
      {.inputs = {normal({1, 3}), normal({3}), uniform({3}, 0.5, 2)},
       .why = "one number a channel has no variance to estimate"},
      {.inputs = {normal({2, 3, 2}), normal({3}), uniform({3}, 0.5, 2), normal({3}), normal({3})},
       .attrs = {{"epsilon", 1.25}, {"momentum", 0.25}},
       .why = "an epsilon as large as the variance"},
  };
}

}  // namespace weft::conformance

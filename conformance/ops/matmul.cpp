#include "conformance/cases.h"

namespace weft::conformance {

OpCases matmul_cases() {
  return {
      {.inputs = {normal({5, 7}), normal({7, 9})}, .why = "odd sizes"},
      {.inputs = {normal({7, 5}), normal({7, 9})}, .attrs = {{"transpose_a", 1}}, .why = "a transposed"},
      {.inputs = {normal({5, 7}), normal({9, 7})}, .attrs = {{"transpose_b", 1}}, .why = "b transposed"},
      {.inputs = {normal({7, 5}), normal({9, 7})},
       .attrs = {{"transpose_a", 1}, {"transpose_b", 1}},
       .why = "both transposed"},
      {.inputs = {normal({17, 65}), normal({65, 33})}, .why = "larger than a tile, no multiple of one"},
      {.inputs = {normal({2, 1, 3, 4}), normal({5, 4, 2})}, .why = "leading axes broadcast"},
      {.inputs = {normal({2, 4, 3}), normal({4, 2})},
       .attrs = {{"transpose_a", 1}},
       .why = "one matrix b for all"},
      {.inputs = {normal({1, 6}), normal({6, 1})}, .why = "a dot product"},
      {.inputs = {normal({3, 0}), normal({0, 2})}, .why = "no terms: zeros"},
      {.inputs = {normal({0, 3}), normal({3, 2})}, .why = "no rows"},
      {.inputs = {integers({6, 12}, -9, 9), integers({12, 5}, -9, 9)}, .why = "small integers: exact"},
      {.inputs = {values({kInf, 1, kNan, 0, 1, 2}, {3, 2}), values({1, 0, 2, 1}, {2, 2})},
       .why = "infinity times zero is NaN, and stays in its row",
       .no_gradient = "infinite"},
      {.inputs = {values({100, -100, 100, 1}, {1, 4}), values({100, 100, 1, 1}, {4, 1})},
       .why = "cancellation"},
      {.inputs = {values({1e-20L, 1e-3L}, {1, 2}), values({1e-20L, 1e-4L}, {2, 1})},
       .why = "a product that underflows"},
  };
}

}  // namespace weft::conformance

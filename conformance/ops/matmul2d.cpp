#include "conformance/cases.h"

namespace weft::conformance {

OpCases matmul2d_cases() {
  return {
      {.inputs = {normal({5, 7}), normal({7, 6})}, .why = "plain"},
      {.inputs = {normal({1, 7}), normal({7, 1})}, .why = "a dot product"},
      {.inputs = {normal({0, 3}), normal({3, 4})}, .why = "no rows"},
      {.inputs = {normal({2, 0}), normal({0, 3})}, .why = "sums of nothing"},
      {.inputs = {integers({4, 5}, -4, 4), integers({5, 3}, -4, 4)}, .why = "small integers: exact"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases linear_cases() {
  return {
      {.inputs = {normal({5, 7}), normal({6, 7}), normal({6})}, .why = "rows"},
      {.inputs = {normal({5, 7}), normal({6, 7})}, .why = "without a bias"},
      {.inputs = {normal({2, 3, 7}), normal({6, 7}), normal({6})}, .why = "three axes"},
      {.inputs = {normal({7}), normal({6, 7}), normal({6})}, .why = "a vector"},
      {.inputs = {normal({0, 7}), normal({6, 7}), normal({6})}, .why = "no rows"},
      {.inputs = {normal({3, 40}), normal({300, 40}), normal({300})},
       .why = "few rows, and more columns than some device takes at a time"},
      {.inputs = {normal({3, 0}), normal({4, 0}), normal({4})}, .why = "nothing comes in: the bias"},
      {.inputs = {integers({4, 5}, -4, 4), integers({3, 5}, -4, 4), integers({3}, -4, 4)},
       .why = "small integers: exact"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases mse_cases() {
  return {
      {.inputs = {normal({4, 33}), normal({4, 33})}, .why = "plain"},
      {.inputs = {normal({2, 3, 5}), normal({2, 3, 5})}, .why = "three axes"},
      {.inputs = {normal({}), normal({})}, .why = "rank 0"},
      {.inputs = {normal({0, 3}), normal({0, 3})}, .why = "of nothing"},
      {.inputs = {integers({4, 8}, -4, 4), integers({4, 8}, -4, 4)}, .why = "small integers: exact"},
      {.inputs = {values({kInf, 1}), values({1, kNan})}, .why = "infinite", .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

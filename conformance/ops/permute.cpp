#include "conformance/cases.h"

namespace weft::conformance {

OpCases permute_cases() {
  const auto axes = [](Shape list) -> std::vector<Attr> { return {{"axes", std::move(list)}}; };
  return {
      {.inputs = {normal({3, 5})}, .why = "reversed by default"},
      {.inputs = {normal({2, 3, 4})},
       .attrs = axes({1, 2, 0}),
       .why = "a cycle, which is not its own inverse"},
      {.inputs = {normal({2, 3, 4})},
       .attrs = axes({0, -1, -2}),
       .why = "the last two, counted from the end"},
      {.inputs = {normal({2, 3, 4})}, .attrs = axes({0, 1, 2}), .why = "as it was"},
      {.inputs = {normal({2, 3, 2, 1, 3})}, .attrs = axes({4, 2, 0, 3, 1}), .why = "five axes"},
      {.inputs = {normal({})}, .why = "rank 0"},
      {.inputs = {normal({3, 0, 2})}, .attrs = axes({2, 0, 1}), .why = "empty"},
      {.inputs = {values({kNan, -0.0L, -kInf, 1e-40L}, {2, 2})},
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

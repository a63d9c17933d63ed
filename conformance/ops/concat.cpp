#include "conformance/cases.h"

namespace weft::conformance {

OpCases concat_cases() {
  return {
      {.inputs = {normal({2, 3}), normal({4, 3})}, .why = "rows"},
      {.inputs = {normal({2, 3, 2}), normal({2, 1, 2}), normal({2, 4, 2})},
       .attrs = {{"axis", -2}},
       .why = "three along a middle axis, counted from the end"},
      {.inputs = {normal({3, 2})}, .attrs = {{"axis", 1}}, .why = "one alone"},
      {.inputs = {normal({3}), normal({0}), normal({2})}, .why = "nothing in between"},
      {.inputs = {normal({0, 2}), normal({0, 3})}, .attrs = {{"axis", 1}}, .why = "empty"},
      {.inputs = {normal({1}), normal({2}), normal({3}), normal({1}), normal({2}), normal({1}), normal({1}),
                  normal({4})},
       .why = "eight"},
      {.inputs = std::vector<Input>(32, normal({1, 1, 1, 2})),
       .attrs = {{"axis", 2}},
       .why = "as many as there may be"},
      {.inputs = {values({kNan, -0.0L}), values({-kInf, 1e-40L})},
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

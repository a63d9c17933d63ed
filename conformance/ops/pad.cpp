#include "conformance/cases.h"

namespace weft::conformance {

OpCases pad_cases() {
  const auto edges = [](int64_t axis, int64_t before, int64_t after, double value) -> std::vector<Attr> {
    return {{"axis", axis}, {"before", Shape{before}}, {"after", Shape{after}}, {"value", value}};
  };
  return {
      {.inputs = {normal({3, 4})}, .attrs = edges(0, 1, 2, 0), .why = "rows of zeros"},
      {.inputs = {normal({3, 4})},
       .attrs = edges(1, 2, 0, 1.5),
       .why = "before only; 1.5 truncates for integers"},
      {.inputs = {normal({2, 3, 2})},
       .attrs = edges(-2, 0, 3, -7),
       .why = "after only; -7 saturates when unsigned"},
      {.inputs = {normal({3, 4})}, .attrs = edges(0, 0, 0, 9), .why = "nothing to add"},
      {.inputs = {normal({3, 0})}, .attrs = edges(1, 1, 1, 0.1), .why = "around nothing; 0.1 is rounded"},
      {.inputs = {normal({3})},
       .attrs = edges(0, 1, 1, -std::numeric_limits<double>::infinity()),
       .why = "-infinity",
       .no_gradient = "infinite"},
      {.inputs = {values({kNan, -0.0L, 1e-40L})},
       .attrs = edges(0, 1, 1, 3),
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

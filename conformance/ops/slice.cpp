#include "conformance/cases.h"

namespace weft::conformance {

OpCases slice_cases() {
  const auto range = [](int64_t axis, int64_t start, int64_t stop, int64_t step) -> std::vector<Attr> {
    return {{"axis", axis}, {"start", Shape{start}}, {"stop", Shape{stop}}, {"step", step}};
  };
  return {
      {.inputs = {normal({6, 5})}, .attrs = {{"stop", Shape{4}}}, .why = "leading rows: a view elsewhere"},
      {.inputs = {normal({6, 5})}, .attrs = range(0, 2, 6, 1), .why = "from a row on"},
      {.inputs = {normal({6, 5})}, .attrs = range(-1, 1, 4, 1), .why = "last axis, counted from the end"},
      {.inputs = {normal({3, 7, 2})}, .attrs = range(1, 1, 7, 2), .why = "every second, ends on the last"},
      {.inputs = {normal({3, 8, 2})}, .attrs = range(1, 1, 8, 3), .why = "a step that reaches past the end"},
      {.inputs = {normal({9})}, .attrs = range(0, 0, 9, 20), .why = "a step longer than the axis"},
      {.inputs = {normal({4, 3})}, .attrs = range(0, 2, 2, 1), .why = "empty"},
      {.inputs = {normal({3, 7})},
       .attrs = range(1, -4, -1, 2),
       .why = "bounds counted from the end, with a step"},
      {.inputs = {normal({5, 2})}, .attrs = {{"start", Shape{-3}}}, .why = "the last three"},
      {.inputs = {normal({5, 2})}, .attrs = range(0, -9, 9, 2), .why = "bounds outside mean the ends"},
      {.inputs = {normal({5, 2})}, .attrs = range(0, 4, -3, 1), .why = "stop before start: empty"},
      {.inputs = {values({kNan, -0.0L, -kInf, 1e-40L, 2})},
       .attrs = range(0, 1, 4, 1),
       .why = "bits stay",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

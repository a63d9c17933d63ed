#include "conformance/cases.h"

namespace weft::conformance {

OpCases variance_cases() {
  const auto with = [](Shape axes, int64_t keep, int64_t correction) -> std::vector<Attr> {
    return {{"axes", std::move(axes)}, {"keep", keep}, {"correction", correction}};
  };
  return {
      {.inputs = {normal({4, 33})}, .why = "all axes by default"},
      {.inputs = {normal({4, 9})}, .attrs = with({1}, 0, 1), .why = "last axis, an estimate"},
      {.inputs = {normal({2, 3, 5})}, .attrs = with({-1, 0}, 1, 0), .why = "two axes, kept"},
      {.inputs = {integers({3, 8}, -9, 9)}, .attrs = with({1}, 0, 0), .why = "small integers"},
      {.inputs = {uniform({2, 9}, 1000, 1001)}, .attrs = with({1}, 0, 0), .why = "a large mean"},
      {.inputs = {constant({2, 4}, 3)}, .attrs = with({1}, 0, 0), .why = "no variance"},
      {.inputs = {normal({3, 1})},
       .attrs = with({1}, 0, 1),
       .why = "an estimate from one number: 0 / 0",
       .no_gradient = "NaN"},
      {.inputs = {values({kInf, 1, kNan, 2}, {2, 2})},
       .attrs = with({1}, 0, 0),
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases sort_cases() {
  const auto with = [](int64_t axis, int64_t descending) -> std::vector<Attr> {
    return {{"axis", axis}, {"descending", descending}};
  };
  const auto apart = [](Dims shape) {  // different numbers, in no order
    std::vector<Real> list;
    for (int64_t i = 0; i < count(shape); ++i) list.push_back(static_cast<Real>(i * 17 % 43) / 4 - 5);
    return values(std::move(list), std::move(shape));
  };
  return {
      {.inputs = {normal({4, 33})}, .why = "last axis by default", .no_gradient = "steps change the order"},
      {.inputs = {apart({3, 11})}, .why = "numbers that lie apart"},
      {.inputs = {apart({5, 6})}, .attrs = with(0, 1), .why = "first axis, descending"},
      {.inputs = {apart({2, 7, 3})}, .attrs = with(-2, 0), .why = "middle axis, counted from the end"},
      {.inputs = {normal({3, 1})}, .why = "an axis of size 1"},
      {.inputs = {normal({3, 0})}, .why = "an empty axis"},
      {.inputs = {normal({0, 3})}, .why = "no rows"},
      {.inputs = {integers({4, 20}, -3, 3)},
       .why = "small integers: ties in their order",
       .no_gradient = "ties: kinks"},
      {.inputs = {integers({4, 20}, -3, 3)},
       .attrs = with(1, 1),
       .why = "ties in their order, descending",
       .no_gradient = "ties: kinks"},
      {.inputs = {values({kNan, 1, -kInf, kNan, kInf, -0.0L, 0, -0.0L, 5e-324L, -1}, {2, 5})},
       .why = "infinities, NaN last, zeros are equal",
       .no_gradient = "infinite"},
      {.inputs = {values({kNan, 1, -kInf, kNan, kInf, 0, -0.0L, 0, 5e-324L, -1}, {2, 5})},
       .attrs = with(1, 1),
       .why = "descending: NaN first",
       .no_gradient = "infinite"},
      {.inputs = {values({9007199254740993, 9007199254740992, 9223372036854775807, -9223372036854775807LL})},
       .why = "integers that differ beyond what a double holds",
       .no_gradient = "steps are lost"},
  };
}

}  // namespace weft::conformance

#include "conformance/cases.h"

namespace weft::conformance {

OpCases topk_cases() {
  const auto with = [](int64_t k, int64_t axis, int64_t largest) -> std::vector<Attr> {
    return {{"k", k}, {"axis", axis}, {"largest", largest}};
  };
  const auto apart = [](Dims shape) {  // different numbers, in no order
    std::vector<Real> list;
    for (int64_t i = 0; i < count(shape); ++i) list.push_back(static_cast<Real>(i * 17 % 43) / 4 - 5);
    return values(std::move(list), std::move(shape));
  };
  return {
      {.inputs = {normal({4, 17})}, .why = "the largest by default", .no_gradient = "steps change the order"},
      {.inputs = {apart({3, 13})}, .attrs = with(5, 1, 1), .why = "five"},
      {.inputs = {apart({2, 7, 3})},
       .attrs = with(3, -2, 0),
       .why = "the three smallest along a middle axis"},
      {.inputs = {normal({3, 4})}, .attrs = with(4, 1, 1), .why = "all of them"},
      {.inputs = {normal({3, 4})}, .attrs = with(0, 1, 1), .why = "none of them"},
      {.inputs = {normal({0, 4})}, .attrs = with(2, 1, 1), .why = "no rows"},
      {.inputs = {integers({4, 12}, -2, 2)},
       .attrs = with(7, 1, 1),
       .why = "ties: the lower index first",
       .no_gradient = "ties: kinks"},
      {.inputs = {values({1, kNan, -kInf, kInf, kNan, 2, 3, 4}, {2, 4})},
       .attrs = with(2, 1, 1),
       .why = "a NaN is the largest",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

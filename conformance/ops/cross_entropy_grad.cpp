#include "conformance/cases.h"

namespace weft::conformance {

OpCases cross_entropy_grad_cases() {
  const auto target = [](std::vector<Real> list, DType t) { return values(std::move(list)).as(t); };
  return {
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64), normal({})}, .why = "plain"},
      {.inputs = {normal({1, 33}), target({16}, DType::i32), normal({})}, .why = "one row, i32"},
      {.inputs = {normal({3, 1}), target({0, 0, 0}, DType::i64), normal({})},
       .why = "one class: nothing to learn",
       .no_gradient = "zero everywhere"},
      {.inputs = {values({1000, 0, -1000, 3e38L, 0, 1}, {2, 3}), target({0, 0}, DType::i32), normal({})},
       .why = "no finite logit overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({0, 5}), target({}, DType::i64), normal({})}, .why = "no rows"},
  };
}

}  // namespace weft::conformance

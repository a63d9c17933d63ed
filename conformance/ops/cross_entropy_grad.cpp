#include "conformance/cases.h"

namespace weft::conformance {

OpCases cross_entropy_grad_cases() {
  const auto target = [](std::vector<Real> list, DType t) { return values(std::move(list)).as(t); };
  return {
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64), normal({})}, .why = "plain"},
      {.inputs = {normal({1, 33}), target({16}, DType::i32), normal({})}, .why = "one row, i32"},
      {.inputs = {normal({4, 7}), target({6, -100, 3, -100}, DType::i64), normal({})},
       .why = "rows that do not count"},
      {.inputs = {normal({4, 7}), target({6, 3, 0, 3}, DType::i32), normal({})},
       .attrs = {{"ignore_index", 3}},
       .why = "a class that does not count"},
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64), normal({})},
       .attrs = {{"label_smoothing", 0.1}},
       .why = "smoothed"},
      {.inputs = {normal({4, 3}), target({2, 0, -100, 2}, DType::i64), normal({}), uniform({3}, 0.5, 2)},
       .why = "classes with weights"},
      {.inputs = {normal({4, 3}), target({2, 0, 1, 2}, DType::i32), normal({}), uniform({3}, 0.5, 2)},
       .attrs = {{"ignore_index", 1}, {"label_smoothing", 0.25}},
       .why = "all together"},
      {.inputs = {normal({3, 4}), uniform({3, 4}, 0.1, 1), normal({})}, .why = "probabilities"},
      {.inputs = {normal({3, 4}), uniform({3, 4}, 0.1, 1), normal({}), uniform({4}, 0.5, 2)},
       .attrs = {{"label_smoothing", 0.25}},
       .why = "probabilities, smoothed and weighted"},
      {.inputs = {normal({2, 5}), target({-100, -100}, DType::i64), normal({})},
       .why = "nothing counts: zeros",
       .no_gradient = "zero everywhere"},
      {.inputs = {values({1, 2, kNan, kInf}, {2, 2}), target({1, -100}, DType::i64), normal({})},
       .why = "what does not count may be anything",
       .no_gradient = "NaN"},
      {.inputs = {normal({3, 1}), target({0, 0, 0}, DType::i64), normal({})},
       .why = "one class: nothing to learn",
       .no_gradient = "zero everywhere"},
      {.inputs = {values({1000, 0, -1000, 3e38L, 0, 1}, {2, 3}), target({0, 0}, DType::i32), normal({})},
       .why = "no finite logit overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({0, 5}), target({}, DType::i64), normal({})}, .why = "no rows"},
      {.inputs = {normal({3, 520}), target({130, 260, 390}, DType::i64), normal({})},
       .why = "rows of 520",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 1027}), target({342, 684}, DType::i64), normal({})},
       .why = "rows of 1,027",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200}), target({733, 1466}, DType::i64), normal({})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 8600}), target({4300}, DType::i64), normal({})},
       .why = "rows of 8,600",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 33000}), target({16500}, DType::i64), normal({})},
       .why = "rows of 33,000",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

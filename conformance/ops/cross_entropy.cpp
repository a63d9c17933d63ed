#include "conformance/cases.h"

namespace weft::conformance {

OpCases cross_entropy_cases() {
  const auto target = [](std::vector<Real> list, DType t) { return values(std::move(list)).as(t); };
  return {
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64)}, .why = "plain"},
      {.inputs = {normal({1, 33}), target({16}, DType::i32)}, .why = "one row, i32"},
      {.inputs = {normal({4, 7}), target({6, -100, 3, -100}, DType::i64)}, .why = "rows that do not count"},
      {.inputs = {normal({4, 7}), target({6, 3, 0, 3}, DType::i32)},
       .attrs = {{"ignore_index", 3}},
       .why = "a class that does not count"},
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64)},
       .attrs = {{"label_smoothing", 0.1}},
       .why = "smoothed"},
      {.inputs = {normal({4, 3}), target({2, 0, -100, 2}, DType::i64), uniform({3}, 0.5, 2)},
       .why = "classes with weights"},
      {.inputs = {normal({4, 3}), target({2, 0, 1, 2}, DType::i32), uniform({3}, 0.5, 2)},
       .attrs = {{"ignore_index", 1}, {"label_smoothing", 0.25}},
       .why = "all together"},
      {.inputs = {normal({3, 4}), uniform({3, 4}, 0.1, 1)}, .why = "probabilities"},
      {.inputs = {normal({3, 4}), uniform({3, 4}, 0.1, 1), uniform({4}, 0.5, 2)},
       .attrs = {{"label_smoothing", 0.25}},
       .why = "probabilities, smoothed and weighted"},
      {.inputs = {normal({0, 5}), normal({0, 5})}, .why = "no probabilities: 0 / 0", .no_gradient = "NaN"},
      {.inputs = {normal({2, 5}), target({-100, -100}, DType::i64)},
       .why = "nothing counts: 0 / 0",
       .no_gradient = "NaN"},
      {.inputs = {normal({2, 3}), target({1, 1}, DType::i64), values({1, 0, 2})},
       .attrs = {{"label_smoothing", 0.5}},
       .why = "what counts weighs nothing: 0 / 0",
       .no_gradient = "NaN"},
      {.inputs = {values({1, 2, kNan, kInf}, {2, 2}), target({1, -100}, DType::i64)},
       .why = "what does not count may be anything",
       .no_gradient = "NaN"},
      {.inputs = {normal({3, 1}), target({0, 0, 0}, DType::i64)},
       .why = "one class: no loss",
       .no_gradient = "zero everywhere"},
      {.inputs = {values({1000, 0, -1000, 3e38L, 0, 1}, {2, 3}), target({0, 0}, DType::i32)},
       .why = "no finite logit overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({0, 5}), target({}, DType::i64)}, .why = "no rows: 0 / 0", .no_gradient = "NaN"},
      {.inputs = {values({0, -kInf, 1, 2}, {2, 2}), target({1, 0}, DType::i64)},
       .why = "an impossible class costs infinity",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

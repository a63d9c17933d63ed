#include "conformance/cases.h"

namespace weft::conformance {

OpCases cross_entropy_with_grad_cases() {
  const auto target = [](std::vector<Real> list, DType t) { return values(std::move(list)).as(t); };
  const Attr wide{"wide", int64_t{1}}, summed{"summed", int64_t{1}};
  return {
      {.inputs = {normal({4, 7}), target({6, 0, 3, 3}, DType::i64), normal({})}, .why = "plain"},
      {.inputs = {normal({4, 7}), target({6, -100, 3, -100}, DType::i32), normal({})},
       .why = "rows that do not count"},
      {.inputs = {normal({4, 7}), target({6, 3, 0, 3}, DType::i32), normal({})},
       .attrs = {{"ignore_index", 3}, summed},
       .why = "a sum, and a class that does not count"},
      {.inputs = {normal({4, 3}), target({2, 0, -100, 2}, DType::i64), normal({}), uniform({3}, 0.5, 2)},
       .attrs = {{"label_smoothing", 0.25}},
       .why = "smoothed classes with weights"},
      {.inputs = {normal({3, 4}), uniform({3, 4}, 0.1, 1), normal({})}, .why = "probabilities"},
      {.inputs = {normal({4, 7}), target({6, -100, 3, 3}, DType::i64), normal({}).as(DType::f32)},
       .attrs = {wide, summed},
       .why = "a loss of halves in f32",
       .no_gradient = "differences are taken in f64"},
      {.inputs = {normal({2, 5}), target({-100, -100}, DType::i64), normal({})},
       .attrs = {summed},
       .why = "nothing counts: zeros",
       .no_gradient = "zero everywhere"},
      {.inputs = {values({1, 2, kNan, kInf}, {2, 2}), target({1, -100}, DType::i64), normal({})},
       .why = "what does not count may be anything",
       .no_gradient = "NaN"},
      {.inputs = {values({1000, 0, -1000, 3e38L, 0, 1}, {2, 3}), target({0, 0}, DType::i32), normal({})},
       .why = "no finite logit overflows",
       .no_gradient = "steps are lost"},
      {.inputs = {normal({3, 1031}), target({0, -100, 5}, DType::i64), normal({}).as(DType::f32)},
       .attrs = {wide},
       .why = "rows of 1,031, each of which begins elsewhere, with a loss of halves in f32",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({2, 2200}), target({733, 1466}, DType::i64), normal({})},
       .why = "rows of 2,200",
       .no_gradient = "as of short rows"},
      {.inputs = {normal({1, 33000}), target({16500}, DType::i64), normal({})},
       .why = "rows of 33,000",
       .no_gradient = "as of short rows"},
  };
}

}  // namespace weft::conformance

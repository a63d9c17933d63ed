#include "conformance/cases.h"

namespace weft::conformance {

OpCases scatter_add_cases() {
  std::vector<Real> rows(700);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Real>(i % 3 == 0 ? 5 : i * i % 37);
  const Input many = values(rows);
  return {
      {.inputs = {normal({5, 3}), values({4, 0, 2, 2}).as(DType::i32), normal({4, 3})},
       .why = "rows, one twice"},
      {.inputs = {normal({5, 3}), values({4, 0, 2, 1, 1, 3}, {2, 3}).as(DType::i64), normal({2, 3, 3})},
       .why = "index of rank 2, i64"},
      {.inputs = {normal({2, 5, 3}), values({4, 1}).as(DType::i32), normal({2, 2, 3})},
       .attrs = {{"axis", 1}},
       .why = "middle axis"},
      {.inputs = {normal({4, 6}), values({5, 0, 3, 3}).as(DType::i64), normal({4})},
       .attrs = {{"axis", 1}, {"batch", 1}},
       .why = "one a row, as cross_entropy picks"},
      {.inputs = {normal({2, 3, 4, 2}), values({3, 0, 1, 1}, {2, 2}).as(DType::i32), normal({2, 3, 2, 2})},
       .attrs = {{"axis", -2}, {"batch", 1}},
       .why = "batch, an axis between, and rest; axis counted from the end"},
      {.inputs = {normal({4, 2}), values({2}, {}).as(DType::i32), normal({2})}, .why = "index of rank 0"},
      {.inputs = {normal({4, 2}), values({}).as(DType::i32), normal({0, 2})}, .why = "no index"},
      {.inputs = {integers({3, 2}, -9, 9), values({1, 1, 1, 0}).as(DType::i32), integers({4, 2}, -9, 9)},
       .why = "small integers: exact"},
      {.inputs = {constant({2}, 0), constant({300}, 1).as(DType::i32), constant({300}, 1)},
       .why = "more updates of one element than bf16 can count one by one"},
      {.inputs = {values({kInf, 1, 2}), values({0, 1}).as(DType::i32), values({-kInf, kNan})},
       .why = "infinities and NaN",
       .no_gradient = "infinite"},
      {.inputs = {normal({40, 3}), many.as(DType::i32), normal({700, 3})},
       .why = "few and many of a row, and rows with none",
       .no_gradient = "as of few"},
  };
}

}  // namespace weft::conformance

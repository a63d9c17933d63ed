#include "conformance/cases.h"

namespace weft::conformance {

OpCases ragged_cache_append_cases() {
  const auto ints = [](std::initializer_list<Real> x) { return values(x).as(DType::i32); };
  const auto longs = [](std::initializer_list<Real> x) { return values(x).as(DType::i64); };
  return {
      {.inputs = {normal({3, 2, 7, 2}), normal({9, 2, 2}), ints({0, 2, 1}), ints({0, 1, 6, 9})},
       .why = "1, 5 and 3 rows"},
      {.inputs = {normal({1, 2, 6, 3}), normal({2, 2, 3}), ints({3}), longs({0, 2})},
       .why = "one sequence, in the middle"},
      {.inputs = {normal({2, 1, 5, 4}), normal({2, 1, 4}), longs({4, 0}), ints({0, 1, 2})},
       .why = "a row each; one fills its cache"},
      {.inputs = {normal({4, 2, 5, 2}), normal({3, 2, 2}), longs({1, 2, 0, 3}), longs({0, 0, 2, 2, 3})},
       .why = "two have none"},
      {.inputs = {normal({2, 1, 4, 3}), normal({6, 1, 3}), ints({2, 4}), ints({0, 4, 6})},
       .why = "rows behind the cache; a full cache stays"},
      {.inputs = {normal({2, 2, 4, 2}), normal({6, 2, 2}), ints({0, 1}), ints({1, 3, 5})},
       .why = "rows before the first sequence and behind the last"},
      {.inputs = {normal({3, 1, 4, 2}), normal({5, 1, 2}), ints({1, -3, 9}), ints({3, 1, -2, 7})},
       .why = "offsets out of order and outside, lengths outside"},
      {.inputs = {normal({1, 1, 4, 2}), normal({5, 1, 2}), ints({2}), ints({3, 1})},
       .why = "one sequence, offsets out of order"},
      {.inputs = {values({kNan, 1, kInf, 2}, {1, 1, 4, 1}), values({-kInf, kNan}, {2, 1, 1}), ints({1}),
                  ints({0, 2})},
       .why = "what is written over may be anything, and so may what is written"},
      {.inputs = {normal({2, 0, 4, 2}), normal({3, 0, 2}), ints({0, 1}), ints({0, 2, 3})}, .why = "no heads"},
  };
}

}  // namespace weft::conformance

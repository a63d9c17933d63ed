#include "conformance/cases.h"

namespace weft::conformance {

OpCases ragged_attention_cases() {
  const auto ints = [](std::initializer_list<Real> x) { return values(x).as(DType::i32); };
  const auto longs = [](std::initializer_list<Real> x) { return values(x).as(DType::i64); };
  const auto caches = [](Dims k, int64_t width) {
    Dims v = k;
    v.back() = width;
    return std::pair{normal(std::move(k)), normal(std::move(v))};
  };
  const auto [k, v] = caches({3, 2, 7, 4}, 3);
  const auto [k1, v1] = caches({1, 2, 8, 4}, 4);
  return {
      {.inputs = {normal({9, 2, 4}), k, v, ints({0, 2, 1}), ints({0, 1, 6, 9})}, .why = "1, 5 and 3 tokens"},
      {.inputs = {normal({3, 2, 4}), k, v, longs({0, 6, 3}), longs({0, 1, 2, 3})},
       .why = "a token each; one fills its cache"},
      {.inputs = {normal({4, 4, 4}), k, v, ints({5, 2, 0}), ints({0, 0, 4, 4})},
       .attrs = {{"scale", 0.3}},
       .why = "grouped heads, another scale; two sequences have none"},
      {.inputs = {normal({6, 2, 4}), k1, v1, ints({0}), ints({0, 6})},
       .why = "one sequence, from its beginning"},
      {.inputs = {normal({5, 4, 4}), k1, v1, longs({3}), ints({0, 5})},
       .why = "one sequence, grouped heads; its cache is full"},
      {.inputs = {normal({1, 2, 4}), k1, v1, ints({7}), ints({0, 1})}, .why = "one token"},
      {.inputs = {normal({4, 2, 4}), k1, v1, ints({2}), ints({1, 3})},
       .why = "tokens before and behind the only sequence: zeros"},
      {.inputs = {normal({8, 2, 4}), k, v, ints({1, 0, 2}), ints({1, 3, 4, 6})},
       .why = "tokens before the first sequence and behind the last: zeros"},
      {.inputs = {normal({7, 2, 4}), k, v, ints({5, 7, 6}), ints({0, 4, 5, 7})},
       .why = "tokens beyond the cache see all of it"},
      {.inputs = {normal({6, 2, 4}), k, v, ints({1, -3, 9}), longs({3, 1, -2, 7})},
       .why = "offsets out of order and outside, lengths outside"},
      {.inputs = {normal({5, 2, 4}), k1, v1, ints({2}), ints({3, 1})},
       .why = "one sequence, offsets out of order"},
      {.inputs = {normal({3, 1, 2}), values({1, 2, 3, 4, kNan, kInf, 1, 1, -1, 2, 0, 1}, {2, 1, 3, 2}),
                  values({1, 2, 3, 4, -kInf, kNan, 1, 1, 2, 2, 3, 3}, {2, 1, 3, 2}), ints({0, 2}),
                  ints({0, 2, 3})},
       .why = "what lies behind a sequence may be anything"},
      {.inputs = {normal({200, 2, 8}), normal({2, 1, 160, 8}), normal({2, 1, 160, 8}), ints({10, 0}),
                  ints({0, 120, 200})},
       .why = "more tokens than a block of a kernel holds",
       .dtypes = only({DType::f32})},
      {.inputs = {normal({1, 2, 8}), normal({1, 1, 700, 8}), normal({1, 1, 700, 8}), ints({600}),
                  ints({0, 1})},
       .why = "one token, whose keys several blocks of a kernel share",
       .dtypes = only({DType::f32, DType::bf16})},
      {.inputs = {normal({1, 2, 8}), normal({1, 1, 1300, 8}), normal({1, 1, 1300, 8}), ints({1250}),
                  ints({0, 1})},
       .why = "one token, more keys than blocks that meet",
       .dtypes = only({DType::f32, DType::bf16})},
      {.inputs = {normal({2, 0, 3}), normal({1, 1, 2, 3}), normal({1, 1, 2, 2}), ints({0}), ints({0, 2})},
       .why = "no heads"},
  };
}

}  // namespace weft::conformance

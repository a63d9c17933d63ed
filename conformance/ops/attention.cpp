#include "conformance/cases.h"

namespace weft::conformance {

// Infinite values in a column each, and a NaN.
static Input values_some_infinite(int64_t keys, int64_t width) {
  std::vector<Real> all(static_cast<size_t>(keys * width), 0.5L);
  all[3] = kInf, all[static_cast<size_t>(width) + 5] = -kInf, all[static_cast<size_t>(2 * width) + 7] = kNan;
  return values(std::move(all), {1, keys, width});
}

OpCases attention_cases() {
  const Input all = constant({1}, 1).as(DType::boolean);  // a mask that hides nothing
  const Input some = values({1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0}, {3, 4}).as(DType::boolean);
  return {
      {.inputs = {normal({2, 3, 4, 5}), normal({2, 3, 6, 5}), normal({2, 3, 6, 4})}, .why = "plain"},
      {.inputs = {normal({2, 5, 3}), normal({2, 5, 3}), normal({2, 5, 3})},
       .attrs = {{"causal", 1}},
       .why = "causal"},
      {.inputs = {normal({1, 2, 3}), normal({1, 5, 3}), normal({1, 5, 2})},
       .attrs = {{"causal", 1}},
       .why = "causal, the queries at the end of the keys"},
      {.inputs = {normal({1, 5, 3}), normal({1, 2, 3}), normal({1, 2, 2})},
       .attrs = {{"causal", 1}},
       .why = "causal, more queries than keys: the first ones get zeros"},
      {.inputs = {normal({4, 3, 4}), normal({2, 5, 4}), normal({2, 5, 3})},
       .attrs = {{"scale", 0.3}},
       .why = "grouped heads, another scale"},
      {.inputs = {normal({2, 3, 2}), normal({1, 4, 2}), normal({1, 4, 2}), some},
       .why = "bool mask, with a row that may look nowhere"},
      {.inputs = {normal({2, 3, 2}), normal({2, 4, 2}), normal({2, 4, 2}), normal({2, 1, 4})},
       .why = "a mask that is added"},
      {.inputs = {normal({2, 2, 2}), normal({2, 3, 2}), normal({2, 3, 2}),
                  values({0, -kInf, 1, -kInf, -kInf, -kInf}, {2, 3})},
       .why = "infinite entries hide keys",
       .no_gradient = "infinite"},
      {.inputs = {normal({2, 2, 3}), normal({2, 6, 3}), normal({2, 6, 2}), all,
                  values({4}, {}).as(DType::i32)},
       .why = "only the first keys count"},
      {.inputs = {normal({2, 2, 2, 3}), normal({2, 1, 6, 3}), normal({2, 1, 6, 2}), all,
                  values({5, 1}).as(DType::i64)},
       .attrs = {{"causal", 1}},
       .why = "causal, a length for each sequence; one is shorter than the queries"},
      {.inputs = {normal({2, 1, 3, 2}), normal({2, 1, 4, 2}), normal({2, 1, 4, 3}), all,
                  values({6, 4}).as(DType::i32)},
       .attrs = {{"causal", 1}},
       .why = "a length above the keys there are: the queries stand at its end all the same"},
      {.inputs = {normal({2, 3, 4, 5}), normal({2, 6, 2, 5}), normal({2, 6, 2, 4})},
       .attrs = {{"causal", 1}, {"seq_first", 1}},
       .why = "seq first, grouped heads"},
      {.inputs = {normal({2, 6, 4, 5}), normal({2, 6, 2, 5}), normal({2, 6, 2, 4}), all,
                  values({5, 1}).as(DType::i64)},
       .attrs = {{"causal", 1}, {"seq_first", 1}},
       .why = "seq first, a length for each sequence"},
      {.inputs = {normal({1, 2, 2}), values({1, 2, 3, 4, kNan, kInf}, {1, 3, 2}),
                  values({1, 2, 3, 4, -kInf, kNan}, {1, 3, 2}), all, values({2}, {}).as(DType::i32)},
       .why = "what lies behind the length may be anything",
       .no_gradient = "infinite"},
      {.inputs = {normal({1, 2, 3}), normal({1, 0, 3}), normal({1, 0, 2})}, .why = "no keys: zeros"},
      {.inputs = {normal({0, 2, 2, 3}), normal({0, 1, 2, 3}), normal({0, 1, 2, 2})}, .why = "empty batch"},
      {.inputs = {values({100, -100, 50, 3}, {1, 2, 2}), values({100, 1, 2, -100, -100, 100}, {1, 3, 2}),
                  normal({1, 3, 2})},
       .why = "large scores",
       .no_gradient = "steps are lost"},
      {.inputs = {constant({1, 2, 3}, 1), values({-kInf, 1, 2, 0.5L, -1, 0.25L, 1, 0, 0.125L}, {1, 3, 3}),
                  values({1, kInf, 2, -kInf, kNan, 4, 3, 1, 5}, {1, 3, 3})},
       .why = "a key at minus infinity has no weight; infinite values stay infinite",
       .no_gradient = "infinite"},
      {.inputs = {normal({2, 3, 4}), normal({2, 5, 4}), uniform({2, 5, 4}, -1e-36, 1e-36)},
       .why = "values near the smallest number",
       .dtypes = only({DType::f32}),
       .no_gradient = "too small for differences"},
      {.inputs = {normal({2, 3, 4}), normal({2, 1, 4}), normal({2, 1, 2})}, .why = "one key"},
      {.inputs = {normal({2, 66, 4}), normal({1, 70, 4}), normal({1, 70, 4})},
       .attrs = {{"causal", 1}},
       .why = "causal, grouped heads, tiles of queries and of keys",
       .no_gradient = "attention_grad has a case as large"},
      {.inputs = {normal({3, 1, 72}), normal({66, 1, 72}), normal({66, 1, 72})},
       .attrs = {{"causal", 1}, {"seq_first", 1}},
       .why = "wide heads, seq first",
       .no_gradient = "attention_grad has a case as large"},
      // Kernels may be others where bounds allow the roundings of many terms.
      {.inputs = {normal({4, 5, 16}), normal({2, 260, 16}), normal({2, 260, 16})},
       .attrs = {{"causal", 1}},
       .why = "hundreds of keys, grouped heads",
       .no_gradient = "attention_grad has a case as large"},
      {.inputs = {normal({3, 1, 72}), normal({260, 1, 72}), normal({260, 1, 72})},
       .attrs = {{"seq_first", 1}},
       .why = "hundreds of keys, wide heads, seq first",
       .no_gradient = "attention_grad has a case as large"},
      {.inputs = {normal({2, 70, 16}), normal({1, 66, 16}), values_some_infinite(66, 16)},
       .why = "infinite values stay infinite, in rows of whole pieces",
       .no_gradient = "infinite"},
      {.inputs = {normal({1, 70, 16}), normal({1, 260, 16}), values_some_infinite(260, 16)},
       .why = "infinite values among hundreds stay infinite",
       .no_gradient = "infinite"},
  };
}

}  // namespace weft::conformance

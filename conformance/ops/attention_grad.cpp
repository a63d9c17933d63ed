#include "conformance/cases.h"

namespace weft::conformance {

// lse is f64 for f64 and f32 for everything else, so halves have cases of their own.
static Case with(Dims q, Dims k, int64_t width, std::vector<Input> rest, std::vector<Attr> attrs,
                 const char* why) {
  Dims v = k, y = q;
  const Dims rows(q.begin(), q.end() - 1);
  v.back() = y.back() = width;
  Case c = {.inputs = {normal(q), normal(k), normal(v), normal(y), normal(rows), normal(y)},
            .attrs = std::move(attrs),
            .why = why,
            .dtypes = kWideFloats};
  c.inputs.insert(c.inputs.end(), rest.begin(), rest.end());
  return c;
}
static Case in_halves(Case c) {
  c.inputs[4] = c.inputs[4].as(DType::f32);
  c.dtypes = only({DType::f16, DType::bf16});
  c.no_gradient = "derivatives are checked in f64";
  return c;
}

OpCases attention_grad_cases() {
  const Input all = constant({1}, 1).as(DType::boolean);
  const Input some = values({1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0}, {3, 4}).as(DType::boolean);
  OpCases cases = {
      with({2, 3, 4, 5}, {2, 3, 6, 5}, 4, {}, {}, "plain"),
      with({2, 5, 3}, {2, 5, 3}, 3, {}, {{"causal", 1}}, "causal"),
      with({4, 3, 4}, {2, 5, 4}, 3, {}, {{"scale", 0.3}}, "grouped heads, another scale"),
      with({2, 3, 2}, {1, 4, 2}, 2, {some}, {}, "bool mask"),
      with({2, 3, 2}, {2, 4, 2}, 2, {normal({2, 1, 4})}, {}, "a mask that is added"),
      with({2, 2, 2, 3}, {2, 1, 6, 3}, 2, {all, values({5, 1}).as(DType::i64)}, {{"causal", 1}},
           "causal, a length for each sequence"),
      with({1, 2, 3}, {1, 0, 3}, 2, {}, {}, "no keys: zeros"),
  };
  Case seq_first =
      with({2, 3, 4, 5}, {2, 6, 2, 5}, 4, {}, {{"causal", 1}, {"seq_first", 1}}, "seq first, grouped");
  seq_first.inputs[4] = normal({2, 4, 3});
  cases.push_back(seq_first);
  cases.push_back(in_halves(cases[0]));
  cases.push_back(in_halves(cases[2]));
  Case tiles = with({2, 66, 4}, {1, 70, 4}, 4, {}, {{"causal", 1}}, "causal, grouped, tiles of both");
  tiles.inputs[4] = constant({2, 66}, 5);  // weights below 1, as those of real rows
  tiles.no_gradient = "the same as of one tile";
  cases.push_back(tiles);
  cases.push_back(in_halves(tiles));
  Case wide =
      with({2, 130, 36}, {1, 140, 36}, 36, {}, {{"causal", 1}}, "grouped, three tiles of both, wide rows");
  wide.inputs[4] = constant({2, 130}, 5);
  wide.no_gradient = "the same as of one tile";
  cases.push_back(wide);
  // Kernels may be others where bounds allow the roundings of many terms.
  for (const int64_t dim : {16, 72}) {
    Case many = with({4, 65, dim}, {1, 260, dim}, dim, {}, {{"causal", 1}}, "hundreds of queries and keys");
    many.inputs[4] = constant({4, 65}, 5);
    many.no_gradient = "the same as of one tile";
    cases.push_back(in_halves(many));
  }
  Case nowhere =
      with({1, 2, 2}, {1, 3, 2}, 2, {constant({1, 3}, 0).as(DType::boolean)}, {}, "rows of -inf: zeros");
  nowhere.inputs[4] = constant({1, 2}, -kInf);
  nowhere.no_gradient = "infinite";
  cases.push_back(nowhere);
  Case infinite = with({1, 5, 8}, {1, 6, 8}, 8, {}, {}, "an infinite gradient, in rows of whole pieces");
  std::vector<Real> dy(5 * 8, 0.5L);
  dy[2 * 8 + 3] = kInf;
  // Signs that add up to infinity, not to NaN.
  infinite.inputs[1] = constant({1, 6, 8}, 0.25), infinite.inputs[2] = constant({1, 6, 8}, 0.5);
  infinite.inputs[3] = constant({1, 5, 8}, -1), infinite.inputs[4] = constant({1, 5}, 3);
  infinite.inputs[5] = values(std::move(dy), {1, 5, 8});
  infinite.no_gradient = "infinite";
  cases.push_back(infinite);
  return cases;
}

}  // namespace weft::conformance

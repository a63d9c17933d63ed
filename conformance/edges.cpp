#include "conformance/edges.h"

#include <array>
#include <functional>

namespace weft::conformance {
namespace {

// Around the widths of vectors and blocks, odd and prime sizes between them, and the sizes at which indices
// and counters need wider types.
constexpr int64_t kSizes[] = {0,  1,  2,  3,  5,  7,  8,  9,   13,  15,  16,  17,  31,
                              32, 33, 47, 63, 64, 65, 97, 127, 128, 129, 255, 256, 257};
constexpr int64_t kLongSizes[] = {1021, 32767, 32768, 32769, 65535, 65536, 65537};

OpCases elementwise(const ir::OpDef& op) {
  const auto operands = [&](const Dims& shape) {
    return std::vector<Input>(static_cast<size_t>(op.n_inputs - op.n_optional), normal(shape));
  };
  OpCases all;
  for (const int64_t n : kSizes) all.push_back({.inputs = operands({n}), .why = "size"});
  for (const int64_t n : kLongSizes)
    all.push_back({.inputs = operands({n}), .why = "long", .dtypes = only({DType::f32})});
  all.push_back({.inputs = operands({65537, 2}), .why = "many rows", .dtypes = only({DType::f32})});
  Dims shape;
  for (int rank = 0; rank <= 8; ++rank) {
    all.push_back({.inputs = operands(shape), .why = "rank"});
    shape.push_back(rank % 3 == 1 ? 3 : 2);
  }
  if (op.n_inputs - op.n_optional == 2) {
    const std::pair<Dims, Dims> pairs[] = {{{7, 1}, {1, 5}},    {{33}, {4, 33}}, {{}, {17}},
                                           {{3, 1, 9}, {5, 1}}, {{0, 3}, {3}},   {{1}, {65}},
                                           {{2, 3, 4}, {1}}};
    for (const auto& [a, b] : pairs) all.push_back({.inputs = {normal(a), normal(b)}, .why = "broadcast"});
  }
  return all;
}

// Rows of every length. Where the oracle takes quadratic time, no long ones.
OpCases rows(std::vector<Attr> attrs, bool square = false) {
  OpCases all;
  for (const int64_t n : kSizes)
    if (n > 0) all.push_back({.inputs = {normal({3, n})}, .attrs = attrs, .why = "rows of"});
  const auto add = [&](Dims shape, const char* why) {
    all.push_back(
        {.inputs = {normal(std::move(shape))}, .attrs = attrs, .why = why, .dtypes = only({DType::f32})});
  };
  // The largest element is the last one, or the first.
  for (const bool rising : {true, false}) {
    std::vector<Real> slope;
    for (int i = 0; i < 2 * 2053; ++i) slope.push_back(Real(rising ? i % 2053 : -(i % 2053)) / 64);
    all.push_back({.inputs = {values(std::move(slope), {2, 2053})},
                   .attrs = attrs,
                   .why = rising ? "rows that rise" : "rows that fall",
                   .dtypes = only({DType::f32})});
  }
  add({2, 1021}, "long rows");
  add({1, square ? 2053 : 65537}, "long rows");
  add({65537, 2}, "many rows");
  return all;
}

// Along the first axis too, which other code handles.
OpCases with_columns(OpCases all, const std::vector<Attr>& attrs) {
  for (const int64_t n : {33, 1021, 2053})
    all.push_back(
        {.inputs = {normal({n, 3})}, .attrs = attrs, .why = "columns of", .dtypes = only({DType::f32})});
  return all;
}

// In every layout: sizes are multiples of 8, so that rows are whole pieces of 16 bytes.
OpCases aligned_products(int64_t batch, int64_t m, int64_t k, int64_t n) {
  OpCases all;
  for (const int64_t transpose_a : {0, 1})
    for (const int64_t transpose_b : {0, 1})
      all.push_back({.inputs = {normal(transpose_a ? Dims{batch, k, m} : Dims{batch, m, k}),
                                normal(transpose_b ? Dims{n, k} : Dims{batch, k, n})},
                     .attrs = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
                     .why = "rows of whole pieces",
                     .dtypes = only({DType::f16, DType::bf16, DType::f32})});
  return all;
}

// Numbers that kernels may split into parts: near the smallest, and infinite ones among many.
OpCases split_products() {
  std::vector<Real> some(8 * 64, 0.5L);
  some[3] = kInf, some[64 + 5] = -kInf, some[2 * 64 + 7] = kNan, some[4 * 64 + 9] = 3.4e38L;
  const Input infinite = values(some, {8, 64}), plain = uniform({64, 8}, 0.0078125, 0.015625);
  return {{.inputs = {uniform({64, 64}, -1e-36, 1e-36), uniform({64, 64}, -1e20, 1e20)},
           .why = "the smallest numbers and large ones",
           .dtypes = only({DType::f32})},
          {.inputs = {infinite, plain}, .why = "infinite rows", .dtypes = only({DType::f32})},
          {.inputs = {plain, infinite},
           .attrs = {{"transpose_a", 1}, {"transpose_b", 1}},
           .why = "infinite columns",
           .dtypes = only({DType::f32})}};
}

OpCases products() {
  OpCases all = split_products();
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                {1, 7, 1},
                                {2, 3, 5},
                                {7, 1, 9},
                                {17, 13, 11},
                                {31, 33, 32},
                                {64, 64, 64},
                                {65, 63, 67},
                                {3, 257, 5},
                                {129, 2, 127},
                                {0, 3, 2},
                                {3, 0, 2},
                                {5, 1021, 3},
                                {1, 129, 257}})
    all.push_back({.inputs = {normal({m, k}), normal({k, n})}, .why = "product"});
  const auto add = [&](Dims a, Dims b, const char* why) {
    all.push_back(
        {.inputs = {normal(std::move(a)), normal(std::move(b))}, .why = why, .dtypes = only({DType::f32})});
  };
  add({2, 2053}, {2053, 2}, "a long sum");
  all.push_back({.inputs = {integers({2, 65537}, -9, 9), integers({65537, 2}, -9, 9)},
                 .why = "a longer one, exact",
                 .dtypes = only({DType::i32})});
  add({65537, 2}, {2, 3}, "many rows");
  add({3, 2}, {2, 65537}, "many columns");
  add({17, 3, 4}, {17, 4, 5}, "a batch");
  add({65537, 1, 2}, {65537, 2, 1}, "a large batch");
  for (OpCases more : {aligned_products(3, 136, 72, 264), aligned_products(1, 8, 2056, 16)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Every size for both axes in turn: tiles and row copies end along either.
OpCases moves(const std::function<void(Case&, int64_t n)>& finish) {
  OpCases all;
  for (const int64_t n : kSizes)
    for (const bool last : {true, false}) {
      Case& c = all.emplace_back();
      c.inputs = {normal(last ? Dims{19, n} : Dims{n, 21})}, c.why = last ? "rows of" : "columns of";
      finish(c, n);
    }
  return all;
}
OpCases permuted() {
  OpCases all = moves([](Case& c, int64_t) { c.attrs = {{"axes", Shape{1, 0}}}; });
  for (const int64_t n : kSizes)
    all.push_back({.inputs = {normal({2, n, 3})}, .attrs = {{"axes", Shape{0, 2, 1}}}, .why = "matrices of"});
  for (const Dims& shape : {Dims{129, 131}, Dims{257, 136}})
    all.push_back({.inputs = {normal(shape)}, .attrs = {{"axes", Shape{1, 0}}}, .why = "no short axis"});
  return all;
}
OpCases joined() {
  return moves([](Case& c, int64_t) { c.inputs.push_back(c.inputs[0]), c.attrs = {{"axis", 1}}; });
}
OpCases padded() {
  return moves(
      [](Case& c, int64_t) { c.attrs = {{"axis", int64_t{1}}, {"before", Shape{3}}, {"after", Shape{1}}}; });
}
OpCases cut() {
  return moves([](Case& c, int64_t n) {
    const bool last = c.inputs[0].shape[1] == n;
    c.attrs = {{"axis", int64_t{last}}, {"start", Shape{n / 3}}, {"stop", Shape{n}}};
  });
}

// The rows 0 to n - 1 of n in another order, and back again.
Input order_of(int64_t n) {
  std::vector<Real> at;
  for (int64_t i = 0; i < n; ++i) at.push_back(static_cast<Real>(n - 1 - i));
  return values(std::move(at)).as(DType::i32);
}
OpCases indexed(bool scatters) {
  OpCases all;
  for (const int64_t n : {int64_t{257}, int64_t{1021}, int64_t{65537}}) {
    std::vector<Input> inputs = {normal({n, 2}), order_of(n)};
    if (scatters) inputs.push_back(normal({n, 2}));
    all.push_back({.inputs = std::move(inputs), .why = "indices", .dtypes = only({DType::f32})});
  }
  return all;
}

}  // namespace

OpCases edge_cases(const ir::OpDef& op) {
  const std::string_view name = op.name;
  if (name == "matmul") return products();
  for (const char* by_axes : {"sum", "max", "min", "mean", "prod", "logsumexp"})
    if (name == by_axes) return with_columns(rows({{"axes", Shape{1}}}), {{"axes", Shape{0}}});
  for (const char* by_axis : {"softmax", "log_softmax", "argmax", "argmin"})
    if (name == by_axis) return with_columns(rows({{"axis", int64_t{1}}}), {{"axis", int64_t{0}}});
  for (const char* by_axis : {"cumsum", "sort"})
    if (name == by_axis) return with_columns(rows({{"axis", int64_t{1}}}, true), {{"axis", int64_t{0}}});
  if (name == "permute") return permuted();
  if (name == "concat") return joined();
  if (name == "pad") return padded();
  if (name == "slice") return cut();
  if (name == "gather") return indexed(false);
  for (const char* scatter : {"scatter", "scatter_add"})
    if (name == scatter) return indexed(true);
  if (name == "layer_norm") return rows({});
  return ir::has(op.traits, ir::Trait::elementwise) ? elementwise(op) : OpCases();
}

}  // namespace weft::conformance

#include "conformance/edges.h"

#include <array>

namespace weft::conformance {
namespace {

// Around the widths of vectors and of blocks, odd and prime between them, and at the sizes where indices and
// counters change their type.
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

// Rows of every length.
OpCases rows(std::vector<Attr> attrs) {
  OpCases all;
  for (const int64_t n : kSizes)
    if (n > 0) all.push_back({.inputs = {normal({3, n})}, .attrs = attrs, .why = "rows of"});
  return all;
}

OpCases products() {
  OpCases all;
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
  return all;
}

}  // namespace

OpCases edge_cases(const ir::OpDef& op) {
  const std::string_view name = op.name;
  if (name == "matmul") return products();
  for (const char* by_axes : {"sum", "max", "min", "mean", "prod", "logsumexp"})
    if (name == by_axes) return rows({{"axes", Shape{1}}});
  for (const char* by_axis : {"softmax", "log_softmax", "argmax", "argmin", "cumsum", "sort"})
    if (name == by_axis) return rows({{"axis", int64_t{1}}});
  if (name == "layer_norm") return rows({});
  return ir::has(op.traits, ir::Trait::elementwise) ? elementwise(op) : OpCases();
}

}  // namespace weft::conformance

#include "attention.h"

#include <cmath>
#include <limits>

namespace weft::cudnn {

using backend::OpCall;
using backend::Support;
using backend::TypeView;
using Of = Graph::Of;

namespace {

constexpr auto kF32 = CUDNN_DATA_FLOAT;

/// [batch, heads, rows, columns] of memory in which the rows of all heads, or the heads of all rows, follow
/// each other.
struct Layout {
  Sizes sizes, strides;
  Layout(const AttentionSizes& s, int64_t heads, int64_t rows, int64_t columns)
      : sizes{s.batch, heads, rows, columns},
        strides{heads * rows * columns, s.seq_first ? columns : rows * columns,
                s.seq_first ? heads * columns : columns, 1} {}
  Layout transposed() const {
    Layout t = *this;
    std::swap(t.sizes[2], t.sizes[3]), std::swap(t.strides[2], t.strides[3]);
    return t;
  }
};

/// What both graphs are made of.
class Parts {
 public:
  Parts(const AttentionSizes& sizes, Graph& graph)
      : s(sizes),
        g(graph),
        q(s, s.heads, s.seq_q, s.dim),
        k(s, s.kv_heads, s.seq_k, s.dim),
        v(s, s.kv_heads, s.seq_k, s.width),
        y(s, s.heads, s.seq_q, s.width) {}

  const AttentionSizes& s;
  Graph& g;
  Layout q, k, v, y;

  Of in(int64_t which, const Layout& l) { return g.input(which, s.dtype, l.sizes, l.strides); }
  Of out(int64_t which, const Layout& l) { return g.output(which, s.dtype, l.sizes, l.strides); }
  Of matrix(cudnnDataType_t type = kF32) { return g.inner(type, {s.batch, s.heads, s.seq_q, s.seq_k}); }
  Sizes row_sizes() const { return {s.batch, s.heads, s.seq_q, 1}; }
  Of rows() { return g.inner(kF32, row_sizes()); }

  Of scores(Of q_of, Of k_of) {
    const Of raw = g.matmul(q_of, k_of, matrix());
    return g.pointwise(CUDNN_POINTWISE_MUL, raw, g.value(s.scale), matrix());
  }
  /// -inf where a query may not look. The last query sees all keys, the one before it one less.
  Of masked(Of x) {
    if (!s.causal) return x;
    constexpr auto kInt = CUDNN_DATA_INT32;
    const auto index = [&](int64_t axis) {
      return g.pointwise(CUDNN_POINTWISE_GEN_INDEX, x, nullptr, nullptr, matrix(kInt), kF32, axis);
    };
    const auto shifted = [&](cudnnPointwiseMode_t mode, Of row, int64_t by) {
      return g.pointwise(mode, row, g.value(static_cast<int32_t>(by)), nullptr, matrix(kInt), kInt, 3);
    };
    Of row = index(2);
    const Of column = index(3);
    if (s.seq_k != s.seq_q)
      row = shifted(CUDNN_POINTWISE_SUB, shifted(CUDNN_POINTWISE_ADD, row, s.seq_k), s.seq_q);
    const Of sees = g.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, nullptr, matrix(CUDNN_DATA_BOOLEAN),
                                CUDNN_DATA_BOOLEAN);
    return g.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, g.value(-std::numeric_limits<float>::infinity()),
                       sees, matrix());
  }
};

}  // namespace

Support attention_sizes(const OpCall& c, int64_t mask, AttentionSizes& s) {
  const TypeView q = c.input(0), k = c.input(1), v = c.input(2);
  if (c.input(mask).has() || c.input(mask + 1).has()) return Support::no("no mask and no length");
  s.dtype = q.dtype();
  if (s.dtype != DType::f16 && s.dtype != DType::bf16)
    return Support::no("computes on f16 and bf16, got {}", s.dtype);
  if (c.precision() < WEFT_PRECISION_BF16)
    return Support::no("rounds weights to 16 bits before they are multiplied; --precision bf16 allows that");
  s.seq_first = c.attr("seq_first").integer(), s.causal = c.attr("causal").integer();
  const auto at = [&](TypeView t, int from_end) { return t.max()[static_cast<size_t>(t.rank() - from_end)]; };
  s.heads = at(q, s.seq_first ? 2 : 3), s.kv_heads = at(k, s.seq_first ? 2 : 3);
  s.seq_q = at(q, s.seq_first ? 3 : 2), s.seq_k = at(k, s.seq_first ? 3 : 2);
  s.dim = at(q, 1), s.width = at(v, 1), s.batch = 1;
  for (int64_t i = 0; i < q.rank() - 3; ++i) s.batch *= q.max()[static_cast<size_t>(i)];
  if (s.dim % 8 || s.width % 8)
    return Support::no("heads of a multiple of 8 numbers, got {} and {}", s.dim, s.width);
  if (s.causal && s.seq_q > s.seq_k) return Support::no("{} queries of {} keys", s.seq_q, s.seq_k);
  const double scale = c.attr("scale").real();
  s.scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s.dim)));
  return Support::yes();
}

void describe_attention(const AttentionSizes& s, Graph& g) {
  Parts p(s, g);
  const Layout k = p.k.transposed();
  const Of q_of = p.in(0, p.q), k_of = p.in(1, k), v_of = p.in(2, p.v);
  const Of scores = p.masked(p.scores(q_of, k_of));
  const Of most = g.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, p.rows());
  const Of e = g.pointwise(CUDNN_POINTWISE_EXP, g.pointwise(CUDNN_POINTWISE_SUB, scores, most, p.matrix()),
                           p.matrix());
  const Of total = g.reduce(CUDNN_REDUCE_TENSOR_ADD, e, p.rows());
  const Of log = g.pointwise(CUDNN_POINTWISE_LOG, total, p.rows());
  const Of lse = g.output(1, DType::f32, p.row_sizes(), packed(p.row_sizes()));
  g.pointwise(CUDNN_POINTWISE_ADD, most, log, lse);
  const Of weights = g.pointwise(CUDNN_POINTWISE_DIV, e, total, p.matrix(type_of(s.dtype)));
  g.matmul(weights, v_of, p.out(0, p.y));
}

namespace {

/// columnsᵀ of a matrix of scores times rows, for each key; summed over the query heads that share a key.
void products_of_keys(Parts& p, Of matrix, Of rows, int64_t width, Of result) {
  const AttentionSizes& s = p.s;
  const Of turned = p.g.inner(type_of(s.dtype), {s.batch, s.heads, s.seq_k, s.seq_q},
                              {s.heads * s.seq_q * s.seq_k, s.seq_q * s.seq_k, 1, s.seq_k});
  p.g.reshape(matrix, turned);
  if (s.heads == s.kv_heads) {
    p.g.matmul(turned, rows, result);
    return;
  }
  const Of each = p.g.matmul(turned, rows, p.g.inner(type_of(s.dtype), {s.batch, s.heads, s.seq_k, width}));
  p.g.reduce(CUDNN_REDUCE_TENSOR_ADD, each, result);
}

}  // namespace

void describe_attention_grad(const AttentionSizes& s, bool repeatable, Graph& g) {
  Parts p(s, g);
  const Layout kt = p.k.transposed(), vt = p.v.transposed();
  const Of q = p.in(0, p.q), k = p.in(1, kt), v = p.in(2, vt), y = p.in(3, p.y), dy = p.in(5, p.y);
  const Of lse = g.input(4, DType::f32, p.row_sizes(), packed(p.row_sizes()));
  const Of dq = p.out(0, p.q), dk = p.out(1, p.k), dv = p.out(2, p.v);

  // The sums of dy y over each row.
  const Of products = g.pointwise(CUDNN_POINTWISE_MUL, dy, y, g.inner(kF32, p.y.sizes));
  const Of sums = g.reduce(CUDNN_REDUCE_TENSOR_ADD, products, p.rows());
  const Of row_sums = g.pointwise(CUDNN_POINTWISE_MUL, sums, g.value(1.0f), g.scratch(p.row_sizes()));

  const Of shifted = g.pointwise(CUDNN_POINTWISE_SUB, p.scores(q, k), lse, p.matrix());
  const Of weights = g.pointwise(CUDNN_POINTWISE_EXP, p.masked(shifted), p.matrix());
  products_of_keys(p, weights, dy, s.width, dv);

  const Of dweights = g.matmul(dy, v, p.matrix());
  const Of centred = g.pointwise(CUDNN_POINTWISE_SUB, dweights, row_sums, p.matrix());
  const Of unscaled = g.pointwise(CUDNN_POINTWISE_MUL, centred, weights, p.matrix());
  const Of dscores = g.pointwise(CUDNN_POINTWISE_MUL, unscaled, g.value(s.scale), p.matrix(type_of(s.dtype)));
  products_of_keys(p, dscores, q, s.dim, dk);

  const Of k_again = g.reshape(k, g.inner(type_of(s.dtype), p.k.sizes, p.k.strides));
  if (repeatable) {
    g.matmul(dscores, k_again, dq);
    return;
  }
  const Of dq_sum = g.matmul(dscores, k_again, g.scratch(p.q.sizes));
  g.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
}

}  // namespace weft::cudnn

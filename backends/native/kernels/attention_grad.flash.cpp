#include "backends/native/attention.h"
#include "backends/native/gemm.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"

namespace weft::native {

using namespace weft::backend;

namespace {

struct Operands {
  const float *q, *k, *v, *y, *lse, *dy;
  float *dq, *dk, *dv;
  explicit Operands(const Launch& l) {
    const float** in[] = {&q, &k, &v, &y, &lse, &dy};
    for (int64_t i = 0; i < 6; ++i) *in[i] = l.input(i).data<float>();
    float** out[] = {&dq, &dk, &dv};
    for (int64_t i = 0; i < 3; ++i) *out[i] = l.output(i).data<float>();
  }
};

/// A block of queries, transposed, as every block of keys needs it.
struct Block {
  int64_t rows, columns;
  float *queries, *dys;                // [dim, columns] scaled, and [width, columns]
  float lse[kQueries], sum[kQueries];  // sum = dy . y of each query
};

void turn(const AttentionSizes& s, const Operands& o, int64_t head, int64_t i, Block& b) {
  const int64_t rows = std::min(kQueries, s.seq_q - i), at = head * s.seq_q + i;
  b.rows = rows, b.columns = columns_of(rows);
  const float *y = o.y + s.result(head, i), *dy = o.dy + s.result(head, i);
  transpose_queries(o.q + s.query(head, i), s.query_step(), rows, s.dim, s.scale, b.queries);
  transpose_queries(dy, s.result_step(), rows, s.width, 1, b.dys);
  for (int64_t r = 0; r < b.columns; ++r) {
    const bool there = r < rows && o.lse[at + r] != -HUGE_VALF;
    b.lse[r] = there ? o.lse[at + r] : HUGE_VALF;  // weights of a query that sees nothing are exp(-inf) = 0
    b.sum[r] =
        there ? static_cast<float>(dot(y + r * s.result_step(), dy + r * s.result_step(), s.width)) : 0;
  }
}

/// A row-major matrix, or, with `turned`, the transpose of one.
struct Matrix {
  const float* data;
  int64_t row;
  bool turned = false;
};

/// The target of a product: rows that are `row` apart.
struct Result {
  float* data;
  int64_t row;
};

// c [m, n] = or += a [m, k] b [k, n]; b in rows of `b_row` elements.
void product(int64_t m, int64_t n, int64_t k, Matrix a, const float* b, int64_t b_row, Result c, bool add) {
  multiply(Product<float>{.m = m,
                          .n = n,
                          .k = k,
                          .a = a.data,
                          .a_row = a.turned ? 1 : a.row,
                          .a_column = a.turned ? a.row : 1,
                          .b = b,
                          .b_row = b_row,
                          .c = c.data,
                          .c_row = c.row,
                          .accumulate = add});
}

// Gradients of keys [j, j + keys) and of the queries of one block; recomputes the weights.
void pair(const AttentionSizes& s, const Operands& o, int64_t head, int64_t i, int64_t j, int64_t keys,
          const Block& b, float* weights, float* slopes) {
  const int64_t rows = b.rows, n = b.columns, kv = s.key_head(head), query = s.query(head, i),
                key = s.key(kv, j), value = s.value(kv, j);
  product(keys, n, s.dim, {o.k + key, s.key_step()}, b.queries, n, {weights, n}, false);
  if (s.causal) hide_unseen(i - s.seq_q + s.seq_k, n, j, keys, weights);
  product(keys, n, s.width, {o.v + value, s.value_step()}, b.dys, n, {slopes, n}, false);
  // weights = exp(scores - lse); slopes = weights * (slopes - sum) * scale
  softmax_slopes(weights, slopes, keys, n, b.lse, b.sum, s.scale);
  product(keys, s.width, rows, {weights, n}, o.dy + s.result(head, i), s.result_step(),
          {o.dv + value, s.value_step()}, true);
  product(keys, s.dim, rows, {slopes, n}, o.q + query, s.query_step(), {o.dk + key, s.key_step()}, true);
  product(rows, s.dim, keys, {slopes, n, true}, o.k + key, s.key_step(), {o.dq + query, s.query_step()},
          true);
}

// All heads that share one key head, in sequence: no two threads add to one gradient.
void key_head(const AttentionSizes& s, const Operands& o, int64_t kv) {
  const int64_t shared = s.heads / s.kv_heads, batch = kv / s.kv_heads,
                first = batch * s.heads + kv % s.kv_heads * shared;
  float* scores = scratch<float>(Scratch::scores, 2 * kKeys * kQueries);
  Block b;
  b.queries = scratch<float>(Scratch::columns, kQueries * (s.dim + s.width));
  b.dys = b.queries + kQueries * s.dim;
  clear_rows(o.dk + s.key(kv, 0), s.key_step(), s.seq_k, s.dim);
  clear_rows(o.dv + s.value(kv, 0), s.value_step(), s.seq_k, s.width);
  for (int64_t head = first; head < first + shared; ++head) {
    clear_rows(o.dq + s.query(head, 0), s.query_step(), s.seq_q, s.dim);
    for (int64_t i = 0; i < s.seq_q; i += kQueries) {
      turn(s, o, head, i, b);
      const int64_t seen = s.seen(std::min(s.seq_q, i + kQueries) - 1, s.seq_k);
      for (int64_t j = 0; j < seen; j += kKeys)
        pair(s, o, head, i, j, std::min(kKeys, seen - j), b, scores, scores + kKeys * kQueries);
    }
  }
}

Outcome launch(const Launch& l) {
  const AttentionSizes s(l);
  const Operands o(l);
  l.host().parallel_for(s.batches * s.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t kv = begin; kv < end; ++kv) key_head(s, o, kv);
  });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord attention_grad_flash = {
    .op = "attention_grad",
    .variant = "flash",
    .reads = {"causal", "scale", "seq_first"},
    .accepts = [](const OpCall& c) { return accepts_attention(c, 6); },
    .launch = launch};

}  // namespace weft::native

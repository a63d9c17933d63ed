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

/// A block of queries, turned: what every block of keys needs of it.
struct Block {
  float *queries, *dys;                // [dim, kQueries] scaled, and [width, kQueries]
  float lse[kQueries], sum[kQueries];  // sum = dy . y of each query
};

void turn(const AttentionSizes& s, const Operands& o, int64_t head, int64_t i, Block& b) {
  const int64_t rows = std::min(kQueries, s.seq_q - i), at = head * s.seq_q + i;
  transpose_queries(o.q + at * s.dim, rows, s.dim, s.scale, b.queries);
  transpose_queries(o.dy + at * s.width, rows, s.width, 1, b.dys);
  for (int64_t r = 0; r < kQueries; ++r) {
    const bool there = r < rows && o.lse[at + r] != -HUGE_VALF;
    b.lse[r] = there ? o.lse[at + r] : HUGE_VALF;  // weights of a query that sees nothing are exp(-inf) = 0
    b.sum[r] =
        there ? static_cast<float>(dot(o.y + (at + r) * s.width, o.dy + (at + r) * s.width, s.width)) : 0;
  }
}

/// A row-major matrix, or, with `turned`, the transpose of one.
struct Matrix {
  const float* data;
  int64_t row;
  bool turned = false;
};

// c [m, n] = a [m, k] b [k, n], or added to it; b in rows of `b_row` elements.
void product(int64_t m, int64_t n, int64_t k, Matrix a, const float* b, int64_t b_row, float* c, bool add) {
  multiply(Product<float>{.m = m,
                          .n = n,
                          .k = k,
                          .a = a.data,
                          .a_row = a.turned ? 1 : a.row,
                          .a_column = a.turned ? a.row : 1,
                          .b = b,
                          .b_row = b_row,
                          .c = c,
                          .c_row = n,
                          .accumulate = add});
}

// Gradients of keys [j, j + keys) and of the queries of one block: weights and their gradients are made
// again.
void pair(const AttentionSizes& s, const Operands& o, int64_t head, int64_t i, int64_t j, int64_t keys,
          const Block& b, float* weights, float* slopes) {
  const int64_t rows = std::min(kQueries, s.seq_q - i), at = head * s.seq_q + i,
                kv = s.key_head(head) * s.seq_k + j;
  const float *q = o.q + at * s.dim, *k = o.k + kv * s.dim;
  product(keys, kQueries, s.dim, {k, s.dim}, b.queries, kQueries, weights, false);
  hide_unseen(s, s.seq_k, i, j, keys, weights);
  product(keys, kQueries, s.width, {o.v + kv * s.width, s.width}, b.dys, kQueries, slopes, false);
  // weights = exp(scores - lse); slopes = weights * (slopes - sum) * scale
  softmax_slopes(weights, slopes, keys, kQueries, b.lse, b.sum, s.scale);
  product(keys, s.width, rows, {weights, kQueries}, o.dy + at * s.width, s.width, o.dv + kv * s.width, true);
  product(keys, s.dim, rows, {slopes, kQueries}, q, s.dim, o.dk + kv * s.dim, true);
  product(rows, s.dim, keys, {slopes, kQueries, true}, k, s.dim, o.dq + at * s.dim, true);
}

// All heads that share one head of keys, one after the other: no two threads add to one gradient.
void key_head(const AttentionSizes& s, const Operands& o, int64_t kv) {
  const int64_t shared = s.heads / s.kv_heads, batch = kv / s.kv_heads,
                first = batch * s.heads + kv % s.kv_heads * shared;
  float* scores = scratch<float>(Scratch::scores, 2 * kKeys * kQueries);
  Block b;
  b.queries = scratch<float>(Scratch::columns, kQueries * (s.dim + s.width));
  b.dys = b.queries + kQueries * s.dim;
  std::fill_n(o.dk + kv * s.seq_k * s.dim, s.seq_k * s.dim, 0.0f);
  std::fill_n(o.dv + kv * s.seq_k * s.width, s.seq_k * s.width, 0.0f);
  for (int64_t head = first; head < first + shared; ++head) {
    std::fill_n(o.dq + head * s.seq_q * s.dim, s.seq_q * s.dim, 0.0f);
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
    .reads = {"causal", "scale"},
    .accepts = [](const OpCall& c) { return accepts_attention(c, 6); },
    .launch = launch};

}  // namespace weft::native

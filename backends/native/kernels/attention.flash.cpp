#include "backends/native/attention.h"
#include "backends/native/gemm.h"
#include "backends/native/row_launch.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"

namespace weft::native {

using namespace weft::backend;

namespace {

/// Rows of an operand, side by side in f32 or where they lie.
struct Rows {
  const float* data;
  int64_t step;
};
/// Rows of n elements, `step` apart, from element `at` on; halves are widened to `to`, which has room for
/// them.
Rows rows_of(TensorView t, int64_t at, int64_t step, int64_t rows, int64_t n, float* to) {
  const Stored type = stored_float(t.dtype());
  if (type == Stored::f32) return {t.data<float>() + at, step};
  for (int64_t r = 0; r < rows; ++r) widen(type, t.data<uint16_t>() + at + r * step, to + r * n, n);
  return {to, n};
}

// One block of queries of one head: keys pass by in blocks, with the running maximum and sum of each query.
void query_block(const AttentionSizes& s, const Launch& l, int64_t head, int64_t i) {
  const int64_t rows = std::min(kQueries, s.seq_q - i), columns = columns_of(rows), kv = s.key_head(head),
                all = s.keys(head);
  const Stored type = stored_float(l.output(0).dtype());
  const bool halves = type != Stored::f32;
  // Of halves: a block of the result, and one of queries, keys or values.
  float* widened =
      halves ? scratch<float>(Scratch::rows, kQueries * (s.width + std::max(s.dim, s.width))) : nullptr;
  float* y = halves ? widened : l.output(0).data<float>() + s.result(head, i);
  float* block = halves ? widened + kQueries * s.width : nullptr;
  const int64_t y_step = halves ? s.width : s.result_step();
  float* queries = scratch<float>(Scratch::columns, kQueries * s.dim);
  float* scores = scratch<float>(Scratch::scores, kKeys * kQueries);
  const Rows q = rows_of(l.input(0), s.query(head, i), s.query_step(), rows, s.dim, block);
  transpose_queries(q.data, q.step, rows, s.dim, s.scale, queries);
  alignas(64) float most[kQueries], total[kQueries], factor[kQueries];
  std::fill_n(most, kQueries, -HUGE_VALF), std::fill_n(total, kQueries, 0.0f);
  clear_rows(y, y_step, rows, s.width);
  const int64_t seen = s.seen(i + rows - 1, all);
  for (int64_t j = 0; j < seen; j += kKeys) {
    const int64_t keys = std::min(kKeys, seen - j);
    const Rows k = rows_of(l.input(1), s.key(kv, j), s.key_step(), keys, s.dim, block);
    multiply(Product<float>{.m = keys,
                            .n = columns,
                            .k = s.dim,
                            .a = k.data,
                            .a_row = k.step,
                            .b = queries,
                            .b_row = columns,
                            .c = scores,
                            .c_row = columns});
    hide_unseen(s, all, i, columns, j, keys, scores);
    softmax_columns(scores, keys, columns, most, total, factor);
    if (j > 0)
      for (int64_t r = 0; r < rows; ++r)
        if (factor[r] != 1) affine(y + r * y_step, 0, factor[r], nullptr, nullptr, y + r * y_step, s.width);
    const Rows v = rows_of(l.input(2), s.value(kv, j), s.value_step(), keys, s.width, block);
    multiply(Product<float>{.m = rows,
                            .n = s.width,
                            .k = keys,
                            .a = scores,
                            .a_row = 1,
                            .a_column = columns,
                            .b = v.data,
                            .b_row = v.step,
                            .c = y,
                            .c_row = y_step,
                            .accumulate = j > 0});
  }
  float* lse = l.output(1).data<float>() + head * s.seq_q + i;
  for (int64_t r = 0; r < rows; ++r) {
    // A query that sees nothing gives zeros.
    const bool none = total[r] == 0;
    lse[r] = none ? -HUGE_VALF : most[r] + std::log(total[r]);
    affine(y + r * y_step, 0, none ? 0 : 1 / total[r], nullptr, nullptr, y + r * y_step, s.width);
    if (halves) narrow(type, y + r * y_step, l.output(0).data<uint16_t>() + s.result(head, i + r), s.width);
  }
}

Outcome launch(const Launch& l) {
  const AttentionSizes s(l);
  const int64_t blocks = s.query_blocks();
  l.host().parallel_for(s.batches * s.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    // The last blocks see the most keys where order matters: they begin first.
    for (int64_t t = begin; t < end; ++t) query_block(s, l, t / blocks, (blocks - 1 - t % blocks) * kQueries);
  });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord attention_flash = {
    .op = "attention",
    .variant = "flash",
    .reads = {"causal", "scale", "seq_first"},
    .accepts = [](const OpCall& c) { return accepts_attention(c, 3); },
    .launch = launch};

}  // namespace weft::native

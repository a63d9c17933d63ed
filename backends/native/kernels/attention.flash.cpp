#include "backends/native/attention.h"
#include "backends/native/gemm.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"

namespace weft::native {

using namespace weft::backend;

namespace {

// One block of queries of one head: keys pass by in blocks, with the running maximum and sum of each query.
void query_block(const AttentionSizes& s, const Launch& l, int64_t head, int64_t i) {
  const int64_t rows = std::min(kQueries, s.seq_q - i), kv = s.key_head(head), all = s.keys(head);
  const float* k = l.input(1).data<float>() + kv * s.seq_k * s.dim;
  const float* v = l.input(2).data<float>() + kv * s.seq_k * s.width;
  float* y = l.output(0).data<float>() + (head * s.seq_q + i) * s.width;
  float* queries = scratch<float>(Scratch::columns, kQueries * s.dim);
  float* scores = scratch<float>(Scratch::scores, kKeys * kQueries);
  transpose_queries(l.input(0).data<float>() + (head * s.seq_q + i) * s.dim, rows, s.dim, s.scale, queries);
  alignas(64) float most[kQueries], total[kQueries], factor[kQueries];
  std::fill_n(most, kQueries, -HUGE_VALF), std::fill_n(total, kQueries, 0.0f);
  std::fill_n(y, rows * s.width, 0.0f);
  const int64_t seen = s.seen(i + rows - 1, all);
  for (int64_t j = 0; j < seen; j += kKeys) {
    const int64_t keys = std::min(kKeys, seen - j);
    multiply(Product<float>{.m = keys,
                            .n = kQueries,
                            .k = s.dim,
                            .a = k + j * s.dim,
                            .a_row = s.dim,
                            .b = queries,
                            .b_row = kQueries,
                            .c = scores,
                            .c_row = kQueries});
    hide_unseen(s, all, i, j, keys, scores);
    softmax_columns(scores, keys, kQueries, most, total, factor);
    if (j > 0)
      for (int64_t r = 0; r < rows; ++r)
        if (factor[r] != 1) affine(y + r * s.width, 0, factor[r], nullptr, nullptr, y + r * s.width, s.width);
    multiply(Product<float>{.m = rows,
                            .n = s.width,
                            .k = keys,
                            .a = scores,
                            .a_row = 1,
                            .a_column = kQueries,
                            .b = v + j * s.width,
                            .b_row = s.width,
                            .c = y,
                            .c_row = s.width,
                            .accumulate = j > 0});
  }
  float* lse = l.output(1).data<float>() + head * s.seq_q + i;
  for (int64_t r = 0; r < rows; ++r) {
    // A query that sees nothing gives zeros.
    const bool none = total[r] == 0;
    lse[r] = none ? -HUGE_VALF : most[r] + std::log(total[r]);
    affine(y + r * s.width, 0, none ? 0 : 1 / total[r], nullptr, nullptr, y + r * s.width, s.width);
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
    .reads = {"causal", "scale"},
    .accepts = [](const OpCall& c) { return accepts_attention(c, 3); },
    .launch = launch};

}  // namespace weft::native

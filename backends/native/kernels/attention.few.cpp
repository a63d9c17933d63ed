#include "backends/native/attention.h"
#include "backends/native/gemm.h"
#include "backends/native/rows.h"
#include "backends/native/scratch.h"

// A query or a few against many keys, as text is generated: keys and values pass by once, where they lie.
namespace weft::native {

using namespace weft::backend;

namespace {

constexpr int64_t kFew = 4;

Support accepts(const OpCall& c) {
  if (auto s = accepts_attention(c, 3); !s) return s;
  const int64_t queries = c.input(0).max()[static_cast<size_t>(HeadAxes(c).seq)];
  if (queries <= kFew) return Support::yes();
  return Support::no("at most {} queries, got {}", kFew, queries);
}

void one_query(const AttentionSizes& s, const Launch& l, int64_t head, int64_t i) {
  const int64_t kv = s.key_head(head), seen = s.seen(i, s.keys(head));
  float* y = l.output(0).data<float>() + s.result(head, i);
  float& lse = l.output(1).data<float>()[head * s.seq_q + i];
  float* query = scratch<float>(Scratch::columns, s.dim);
  float* scores = scratch<float>(Scratch::scores, s.seq_k);  // it grows once, not with every token
  affine(l.input(0).data<float>() + s.query(head, i), 0, s.scale, nullptr, nullptr, query, s.dim);
  multiply(Product<float>{.m = 1,
                          .n = seen,
                          .k = s.dim,
                          .a = query,
                          .a_row = s.dim,
                          .b = l.input(1).data<float>() + s.key(kv, 0),
                          .b_row = 1,
                          .b_column = s.key_step(),
                          .c = scores,
                          .c_row = seen});
  const float most = max(scores, seen);
  if (most == -HUGE_VALF) {  // a query that sees nothing gives zeros
    std::fill_n(y, s.width, 0.0f);
    lse = most;
    return;
  }
  const double total = exp_of_row(scores, most, scores, seen);
  multiply(Product<float>{.m = 1,
                          .n = s.width,
                          .k = seen,
                          .a = scores,
                          .a_row = seen,
                          .b = l.input(2).data<float>() + s.value(kv, 0),
                          .b_row = s.value_step(),
                          .c = y,
                          .c_row = s.width});
  affine(y, 0, static_cast<float>(1 / total), nullptr, nullptr, y, s.width);
  lse = most + static_cast<float>(std::log(total));
}

Outcome launch(const Launch& l) {
  const AttentionSizes s(l);
  const int64_t queries = s.batches * s.heads * s.seq_q;
  if (queries == 0) return Outcome::ok();
  const int64_t elements = s.keys(0) * (s.dim + s.width);  // of one head: what a piece is measured by
  l.host().parallel_for(queries, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, elements)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t t = begin; t < end; ++t) one_query(s, l, t / s.seq_q, t % s.seq_q);
                        });
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord attention_few = {.op = "attention",
                                           .variant = "few",
                                           .reads = {"causal", "scale", "seq_first"},
                                           .accepts = accepts,
                                           .launch = launch};

}  // namespace weft::native

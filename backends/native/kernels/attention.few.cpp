#include "backends/native/attention.h"
#include "backends/native/gemm.h"
#include "backends/native/halves.h"
#include "backends/native/row_launch.h"
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

/// scores[j] = query . key j.
void score(const AttentionSizes& s, TensorView keys, int64_t kv, const float* query, int64_t seen,
           float* scores) {
  const Stored type = stored_float(keys.dtype());
  if (type != Stored::f32)
    return half_dots(type, query, 1, keys.data<uint16_t>() + s.key(kv, 0), s.key_step(), seen, s.dim, scores,
                     seen);
  multiply(Product<float>{.m = 1,
                          .n = seen,
                          .k = s.dim,
                          .a = query,
                          .a_row = s.dim,
                          .b = keys.data<float>() + s.key(kv, 0),
                          .b_row = 1,
                          .b_column = s.key_step(),
                          .c = scores,
                          .c_row = seen});
}

/// y = the values, weighted by `scores`.
void mix(const AttentionSizes& s, TensorView values, int64_t kv, const float* scores, int64_t seen,
         float* y) {
  const Stored type = stored_float(values.dtype());
  if (type != Stored::f32)
    return half_sums(type, scores, values.data<uint16_t>() + s.value(kv, 0), s.value_step(), seen, s.width,
                     y);
  multiply(Product<float>{.m = 1,
                          .n = s.width,
                          .k = seen,
                          .a = scores,
                          .a_row = seen,
                          .b = values.data<float>() + s.value(kv, 0),
                          .b_row = s.value_step(),
                          .c = y,
                          .c_row = s.width});
}

void one_query(const AttentionSizes& s, const Launch& l, int64_t head, int64_t i) {
  const TensorView q = l.input(0), result = l.output(0);
  const Stored type = stored_float(q.dtype());
  const int64_t kv = s.key_head(head), seen = s.seen(i, s.keys(head));
  float& lse = l.output(1).data<float>()[head * s.seq_q + i];
  float* query = scratch<float>(Scratch::columns, s.dim);
  float* scores = scratch<float>(Scratch::scores, s.seq_k);  // it grows once, not with every token
  float* y =
      type == Stored::f32 ? result.data<float>() + s.result(head, i) : scratch<float>(Scratch::rows, s.width);
  if (type != Stored::f32) widen(type, q.data<uint16_t>() + s.query(head, i), query, s.dim);
  affine(type == Stored::f32 ? q.data<float>() + s.query(head, i) : query, 0, s.scale, nullptr, nullptr,
         query, s.dim);
  score(s, l.input(1), kv, query, seen, scores);
  const float most = max(scores, seen);
  if (most == -HUGE_VALF) {  // a query that sees nothing gives zeros
    std::fill_n(y, s.width, 0.0f);
    lse = most;
  } else {
    const double total = exp_of_row(scores, most, scores, seen);
    mix(s, l.input(2), kv, scores, seen, y);
    affine(y, 0, static_cast<float>(1 / total), nullptr, nullptr, y, s.width);
    lse = most + static_cast<float>(std::log(total));
  }
  if (type != Stored::f32) narrow(type, y, result.data<uint16_t>() + s.result(head, i), s.width);
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
                                           .launch = launch,
                                           .rank = 1};  // before the one for any number of queries

}  // namespace weft::native

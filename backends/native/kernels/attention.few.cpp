#include "backends/native/attention.h"

// One or a few queries against many keys, as in text generation.
namespace weft::native {

using namespace weft::backend;

static Support accepts(const OpCall& c) {
  if (auto s = accepts_attention(c, 3); !s) return s;
  const int64_t queries = c.input(0).max()[static_cast<size_t>(HeadAxes(c).seq)];
  if (queries <= kFewQueries) return Support::yes();
  return Support::no("at most {} queries, got {}", kFewQueries, queries);
}

static Outcome launch(const Launch& l) {
  const AttentionSizes s(l);
  const int64_t queries = s.batches * s.heads * s.seq_q;
  if (queries == 0) return Outcome::ok();
  const int64_t elements = s.keys(0) * (s.dim + s.width);  // of one head: the cost of a piece
  l.host().parallel_for(queries, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, elements)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t t = begin; t < end; ++t)
                            attend_one(head_of(s, l, t / s.seq_q), t % s.seq_q);
                        });
  return Outcome::ok();
}

extern const KernelRecord attention_few = {.op = "attention",
                                           .variant = "few",
                                           .reads = {"causal", "scale", "seq_first"},
                                           .accepts = accepts,
                                           .launch = launch,
                                           .rank = 1};  // before the kernel for any number of queries

}  // namespace weft::native

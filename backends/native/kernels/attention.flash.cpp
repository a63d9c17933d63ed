#include "backends/native/attention.h"

namespace weft::native {

using namespace weft::backend;

static Outcome launch(const Launch& l) {
  const AttentionSizes s(l);
  const int64_t blocks = s.query_blocks();
  l.host().parallel_for(s.batches * s.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    // With `causal` the last blocks see the most keys, so they start first.
    for (int64_t t = begin; t < end; ++t) {
      AttentionHead head = head_of(s, l, t / blocks);
      head.mask = mask_of(s, l, t / blocks);
      attend_block(head, (blocks - 1 - t % blocks) * kQueries);
    }
  });
  return Outcome::ok();
}

extern const KernelRecord attention_flash = {
    .op = "attention",
    .variant = "flash",
    .reads = {"causal", "scale", "seq_first"},
    .accepts = [](const OpCall& c) { return accepts_attention(c, 3, true); },
    .launch = launch};

}  // namespace weft::native

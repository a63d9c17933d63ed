#include "../flash2.h"

namespace weft::kernels {

using namespace backend;

namespace {

Support accepts(const OpCall& c) {
  mha::Sizes unused;
  const auto taken = mha::sizes_of(c, 3, unused);
  return taken ? mha::takes_device() : taken;
}

Outcome prepare(const OpCall&, weft_plan& plan) {
  plan.precision = WEFT_PRECISION_BF16;
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  mha::Sizes s;
  if (auto taken = mha::sizes_of(l.call(), 3, s); !taken)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  return mha::enqueue(l, [&](const mha::Operands& o, cudaStream_t stream) { mha::attention(s, o, stream); });
}

}  // namespace

extern const KernelRecord attention_flash2 = {.op = "attention",
                                              .variant = "flash2",
                                              .reads = {"causal", "scale", "seq_first"},
                                              .accepts = accepts,
                                              .prepare = prepare,
                                              .launch = launch};

}  // namespace weft::kernels

#include <stdexcept>

#include "../flash2.h"

namespace weft::kernels {

using namespace backend;

namespace {

constexpr uint64_t kAlignment = 256;

Support sizes_of(const OpCall& c, mha::Sizes& s) {
  if (auto taken = mha::sizes_of(c, 6, s); !taken) return taken;
  // f16 has too few exponents for the gradients of scores.
  return s.dtype == DType::bf16 ? Support::yes() : Support::no("computes on bf16, got {}", s.dtype);
}

bool repeatable(const OpCall& c) { return c.determinism() >= WEFT_DETERMINISM_RUN; }

Support accepts(const OpCall& c) {
  mha::Sizes unused;
  const auto taken = sizes_of(c, unused);
  return taken ? mha::takes_device() : taken;
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  mha::Sizes s;
  if (auto taken = sizes_of(c, s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  plan.workspace = mha::rooms_of(s, repeatable(c)).end + kAlignment;
  plan.precision = WEFT_PRECISION_BF16;
  plan.determinism = repeatable(c) ? WEFT_DETERMINISM_RUN : WEFT_DETERMINISM_ANY;
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  mha::Sizes s;
  if (auto taken = sizes_of(l.call(), s); !taken) return Outcome::fail(WEFT_UNSUPPORTED, "{}", taken.reason);
  const bool one_order = repeatable(l.call());
  return mha::enqueue(l, [&](const mha::Operands& o, cudaStream_t stream) {
    const mha::Rooms rooms = mha::rooms_of(s, one_order);
    if (rooms.end + kAlignment > static_cast<uint64_t>(l.workspace().bytes()))
      throw std::runtime_error("the plan is that of a device with fewer multiprocessors");
    const auto space = reinterpret_cast<uintptr_t>(l.workspace().data());
    auto* const aligned = reinterpret_cast<char*>((space + kAlignment - 1) / kAlignment * kAlignment);
    mha::attention_grad(s, o, rooms, one_order, aligned, stream);
  });
}

}  // namespace

extern const KernelRecord attention_grad_flash2 = {.op = "attention_grad",
                                                   .variant = "flash2",
                                                   .reads = {"causal", "scale", "seq_first"},
                                                   .accepts = accepts,
                                                   .prepare = prepare,
                                                   .launch = launch,
                                                   .determinism = WEFT_DETERMINISM_RUN};

}  // namespace weft::kernels

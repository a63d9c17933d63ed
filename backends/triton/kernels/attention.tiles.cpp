#include <cmath>

#include "../cubin.h"

namespace weft::kernels {

using namespace backend;
using namespace cubins;

namespace {

struct Sizes {
  int64_t batch = 1, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, dim = 0;
  bool causal = false, seq_first = false;
  DType dtype = DType::bf16;
};

std::string kernel_of(const Sizes& s) {
  return format("attention_{}_{}_{}", name_of(s.dtype), s.dim, int{s.causal});
}

Sizes sizes_of(const OpCall& c) {
  Sizes s;
  s.seq_first = c.attr("seq_first").integer(), s.causal = c.attr("causal").integer();
  const auto q = c.input(0).max(), k = c.input(1).max();
  const auto at = [](std::span<const int64_t> sizes, size_t from_end) {
    return sizes[sizes.size() - from_end];
  };
  s.heads = at(q, s.seq_first ? 2 : 3), s.kv_heads = at(k, s.seq_first ? 2 : 3);
  s.seq_q = at(q, s.seq_first ? 3 : 2), s.seq_k = at(k, s.seq_first ? 3 : 2);
  s.dim = q.back(), s.dtype = c.input(0).dtype();
  for (const int64_t size : q.first(q.size() - 3)) s.batch *= size;
  return s;
}

Support accepts(const OpCall& c) {
  if (c.input(3).has() || c.input(4).has()) return Support::no("no mask and no length");
  if (auto sized = takes_sizes(c); !sized) return sized;
  const Sizes s = sizes_of(c);
  if (s.dtype != DType::f16 && s.dtype != DType::bf16)
    return Support::no("computes on f16 and bf16, got {}", s.dtype);
  if (c.precision() < WEFT_PRECISION_BF16)
    return Support::no("rounds weights to 16 bits before they are multiplied; --precision bf16 allows that");
  if (s.dim != 64 && s.dim != 128) return Support::no("heads of 64 or 128 numbers, got {}", s.dim);
  if (c.input(2).max().back() != s.dim) return Support::no("v must be as wide as k");
  if (s.causal && s.seq_q > s.seq_k) return Support::no("{} queries of {} keys", s.seq_q, s.seq_k);
  if (s.batch * s.heads > 65535) return Support::no("a batch below 65,536, got {}", s.batch * s.heads);
  return there(kernel_of(s));
}

Outcome prepare(const OpCall&, weft_plan& plan) {
  plan.precision = WEFT_PRECISION_BF16;
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  const Sizes s = sizes_of(l.call());
  std::string why;
  const Kernel* kernel = kernel_for(l, kernel_of(s), true, why);
  if (!kernel) return Outcome::fail(WEFT_DEVICE, "{}", why);
  const double given = l.call().attr("scale").real();
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(s.dim));
  const auto number = [](int64_t n) { return static_cast<int32_t>(n); };
  const int64_t rows = kernel->cubin().rows;
  const dim3 blocks(static_cast<unsigned>((s.seq_q + rows - 1) / rows),
                    static_cast<unsigned>(s.batch * s.heads));
  return kernel->start(
      l, blocks, l.input(0).data<void>(), l.input(1).data<void>(), l.input(2).data<void>(),
      l.output(0).data<void>(), l.output(1).data<void>(), number(s.heads), number(s.heads / s.kv_heads),
      number(s.seq_q), number(s.seq_k), number(s.seq_first ? s.heads * s.dim : s.dim),
      number(s.seq_first ? s.dim : s.seq_q * s.dim), number(s.seq_first ? s.kv_heads * s.dim : s.dim),
      number(s.seq_first ? s.dim : s.seq_k * s.dim), static_cast<float>(scale));
}

}  // namespace

extern const KernelRecord attention_tiles = {.op = "attention",
                                             .variant = "tiles",
                                             .reads = {"causal", "scale", "seq_first"},
                                             .accepts = accepts,
                                             .prepare = prepare,
                                             .launch = launch};

}  // namespace weft::kernels

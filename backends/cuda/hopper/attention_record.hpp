#pragma once
#include "attention_parts.hpp"
#include "multiprocessors.hpp"

// What the records of attention and of its gradient for warpgroups take.
namespace weft::cuda {

/// The records of the kernels that take the rest.
std::span<const backend::KernelRecord> attention_flash();
std::span<const backend::KernelRecord> attention_grad_flash();

}  // namespace weft::cuda

namespace weft::cuda::hopper {

/// In how many 16-bit parts weights are multiplied. One rounds them to 8 bits (bf16), which only a caller
/// takes who allows products of bf16. Two keep 16 bits, an error of 2^-17: half of what the bound allows for
/// 256 roundings, n 2^-24 of the sum of all |terms|. The products' own roundings need less than the other
/// half.
inline constexpr int kLeastTerms = 256;
inline int parts_of(const backend::OpCall& c) { return c.precision() >= WEFT_PRECISION_BF16 ? 1 : 2; }
inline Outcome tell_precision(const backend::OpCall& c, weft_plan& plan) {
  plan.precision = parts_of(c) == 1 ? WEFT_PRECISION_BF16 : WEFT_PRECISION_STRICT;
  return Outcome::ok();
}

/// The sizes of a call, or why it is refused. `mask`: the operand's position.
inline backend::Support group_sizes(const backend::OpCall& c, int64_t mask, AttentionSizes& s) {
  using backend::Support;
  if (multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  if (auto known = attention_sizes(c, mask, s); !known) return known;
  if (const DType t = c.input(0).dtype(); t != DType::bf16 && t != DType::f16)
    return Support::no("computes in f16 and bf16, got {}", t);
  if (s.dim == 0 || s.dim % 8) return Support::no("heads of a multiple of 8 numbers, got {}", s.dim);
  if (!(s.scale > 0)) return Support::no("a scale above 0, got {}", s.scale);
  if (s.batch * s.heads * s.seq_q == 0 || s.seq_k == 0) return Support::no("no queries or no keys");
  return Support::yes();
}

/// Whether all operands and results begin at multiples of 16 bytes, as copies of tiles want it. Calls don't
/// say so, but nearly all memory does; attention.flash takes the rest.
inline bool is_aligned(const backend::Launch& l) {
  uintptr_t bits = 0;
  const auto look = [&](backend::TensorView t) {
    if (t.has()) bits |= reinterpret_cast<uintptr_t>(t.data());
  };
  for (int64_t i = 0; i < l.call().n_inputs(); ++i) look(l.input(i));
  for (int64_t i = 0; i < l.call().n_outputs(); ++i) look(l.output(i));
  return bits % 16 == 0;
}

}  // namespace weft::cuda::hopper

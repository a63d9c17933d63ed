#pragma once
#include "weft/backend.hpp"

// What a call of attention, or of its gradient, asks of the kernels.
namespace weft::mha {

struct Sizes {
  int64_t batch = 1, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, dim = 0;
  bool causal = false, seq_first = false;
  float scale = 0;
  DType dtype = DType::bf16;

  /// Query heads that share a head of k and v.
  int64_t group() const { return heads / kv_heads; }
  /// Numbers of a head as the kernels' tiles have them.
  int64_t tile() const { return dim <= 64 ? 64 : 128; }
  /// Rows of q as the kernels' own memory has them.
  int64_t padded_rows() const { return (seq_q + 127) / 128 * 128; }
};

/// The sizes of a call whose first operands are q, k and v, or why it is refused. `mask`: that one's
/// position.
backend::Support sizes_of(const backend::OpCall&, int64_t mask, Sizes&);

}  // namespace weft::mha

#pragma once
#include "attention_split.hpp"

// What the kernels of attention and of its gradient are told about a call.
namespace weft::cuda {

/// Elements from one head, and from one row, to the next, and from one member of the batch to the next.
struct Strides {
  int64_t batch = 0, head = 0, row = 0;
};

struct AttentionSizes {
  int heads = 0, shared_by = 1, seq_q = 0, seq_k = 0,
      dim = 0;  ///< shared_by: query heads to a head of k and v
  int64_t batch = 0;
  Strides q, k;  ///< y and dy lie as q does, v as k
  float scale = 0;
  bool causal = false, aligned = false;  ///< aligned: rows of 16-bit elements begin at 16 bytes

  /// Keys that query i sees.
  __device__ int visible(int i) const {
    if (!causal) return seq_k;
    const int n = i + 1 + seq_k - seq_q;
    return n < 0 ? 0 : n < seq_k ? n : seq_k;
  }
  __device__ RowsOfHead rows_of_q() const { return {q.row, seq_q, dim, aligned}; }
  __device__ RowsOfHead rows_of_k() const { return {k.row, seq_k, dim, aligned}; }
};

/// The sizes of a call whose first three operands are q, k and v, or why it is refused.
backend::Support attention_sizes(const backend::OpCall&, int64_t mask, AttentionSizes&);
/// Sets `aligned`.
void look_at_addresses(const backend::Launch&, AttentionSizes&);
/// Has attention.flash compute once more the tiles of 64 queries of which one of four marks is not 0.
Outcome attention_of_marked(const backend::Launch&, const AttentionSizes&, const int* marks);

__device__ inline int smaller(int a, int b) { return a < b ? a : b; }
__device__ inline int larger(int a, int b) { return a > b ? a : b; }

}  // namespace weft::cuda

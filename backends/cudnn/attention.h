#pragma once
#include "graph.h"

// Attention as cuDNN's engines for it know it: the graphs must have exactly these operations.
namespace weft::cudnn {

struct AttentionSizes {
  int64_t batch = 0, heads = 0, kv_heads = 0, seq_q = 0, seq_k = 0, dim = 0, width = 0;
  bool causal = false, seq_first = false;
  float scale = 0;
  DType dtype = DType::bf16;
};

/// The sizes of a call whose first operands are q, k and v, or why it is refused. `mask`: that one's
/// position.
backend::Support attention_sizes(const backend::OpCall&, int64_t mask, AttentionSizes&);

void describe_attention(const AttentionSizes&, Graph&);
/// With `repeatable`, dq is summed up in one order, over a matrix of the gradients of all scores.
void describe_attention_grad(const AttentionSizes&, bool repeatable, Graph&);

}  // namespace weft::cudnn

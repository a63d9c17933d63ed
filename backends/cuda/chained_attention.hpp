#pragma once
#include "ragged_attention_kernel.hpp"

namespace weft::cuda {

/// Attention of tokens, as a step of a chain (chain.hpp).
struct ChainedAttention {
  const bf16 *q, *keys, *values;
  bf16* y;
  queries::Sizes sizes;
  queries::Fresh<bf16> fresh;
};

}  // namespace weft::cuda

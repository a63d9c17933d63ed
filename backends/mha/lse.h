#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace weft::mha {

/// Rows of log-sum-exp, [batch, heads, rows], and where the rows of y are, in elements.
struct LseRows {
  int64_t count, heads, rows;
  int64_t of_batch, of_head, of_row;
  uint16_t infinity;  ///< the bits of y's infinity; NaNs are above it
};

/// flash-attn says +inf of a row in which no key has a weight, and of one with a NaN. They get -inf and NaN.
void mend_lse(const LseRows&, const void* y, float* lse, cudaStream_t);

}  // namespace weft::mha

#include "lse.h"

#include <cmath>

#include "check.h"

namespace weft::mha {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) mend_rows(LseRows r, const uint16_t* y, float* lse) {
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= r.count || lse[i] != INFINITY) return;
  const int64_t row = i % r.rows, head = i / r.rows % r.heads, batch = i / r.rows / r.heads;
  const uint16_t first = y[batch * r.of_batch + head * r.of_head + row * r.of_row] & 0x7fff;
  lse[i] = first > r.infinity ? NAN : -INFINITY;
}

}  // namespace

void mend_lse(const LseRows& r, const void* y, float* lse, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((r.count + kThreads - 1) / kThreads);
  mend_rows<<<blocks, kThreads, 0, stream>>>(r, static_cast<const uint16_t*>(y), lse);
  check(cudaGetLastError());
}

}  // namespace weft::mha

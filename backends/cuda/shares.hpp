#pragma once
#include "rows.hpp"

// Sums over rows, in two steps: blocks sum their share of the rows, then the shares are summed. How many
// shares there are depends on the sizes alone, so that bits do not depend on the device.
namespace weft::cuda {

/// y[column] = the sum of shares[i * stride + column] for i < n. A block takes 32 columns, which 8 groups of
/// threads share.
template <class T>
__global__ void __launch_bounds__(256)
    sum_of_shares(const float* shares, T* y, int n, int columns, int64_t stride) {
  constexpr int kGroups = 8;
  __shared__ float of_groups[kGroups][32];
  wait_for_kernels_before();
  let_next_kernel_start();
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32,
            column = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (int i = group; i < n; i += kGroups) sum += shares[i * stride + column];
  }
  of_groups[group][lane] = sum;
  sync_block();
  if (group != 0 || column >= columns) return;
#pragma unroll
  for (int i = 1; i < kGroups; ++i) sum += of_groups[i][lane];
  y[column] = narrowed<T>(sum);
}

template <class T>
backend::Outcome start_sum_of_shares(const backend::Launch& l, const float* shares, T* y, int n, int columns,
                                     int64_t stride) {
  return start(l, {static_cast<unsigned>((columns + 31) / 32)}, 256, 0, sum_of_shares<T>, shares, y, n,
               columns, stride);
}

}  // namespace weft::cuda

#pragma once
#include "attention_backward_work.hpp"

// What runs before and after the products of the gradients of attention, row by row.
namespace weft::cuda::hopper {

inline constexpr int kRowThreads = 256;

/// Before: delta, lse for powers of two, and zeros to add dq to and to count turns from. kD / 8 lanes for
/// each row.
template <class B>
__global__ void __launch_bounds__(kRowThreads)
    prepare_rows(const typename B::Element* y, const typename B::Element* dy, const float* lse,
                 BackwardWork w) {
  using T = typename B::Element;
  wait_for_kernels_before();
  let_next_kernel_start();
  constexpr int kLanes = B::kD / 8;
  const AttentionSizes& s = w.sizes;
  const int64_t padded = int64_t{w.q_tiles} * B::kQueries,
                row = (blockIdx.x * int64_t{kRowThreads} + threadIdx.x) / kLanes, head = row / padded;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, query = static_cast<int>(row % padded);
  if (head >= s.batch * s.heads) return;
  float sum = 0, base = INFINITY;
  if (query < s.seq_q) {
    const int64_t at = head / s.heads * s.q.batch + head % s.heads * s.q.head + query * s.q.row + lane * 8;
    if (lane * 8 < s.dim) {
      T a[8], b[8];
      *reinterpret_cast<uint4*>(a) = *reinterpret_cast<const uint4*>(y + at);
      *reinterpret_cast<uint4*>(b) = *reinterpret_cast<const uint4*>(dy + at);
#pragma unroll
      for (int i = 0; i < 8; ++i) sum = fmaf(widened(a[i]), widened(b[i]), sum);
    }
    const float x = lse[head * s.seq_q + query];
    if (x != -INFINITY) base = x * 1.4426950408889634f;
  }
  sum = sum_of<kLanes>(sum);
  if (lane == 0) w.lse[row] = base, w.delta[row] = sum;
  if (w.turns && row % B::kQueries == 0 && lane < B::kPieces)
    w.turns[row / B::kQueries * B::kPieces + lane] = 0;
  w.dq[row * (B::kD / 4) + 2 * lane] = {}, w.dq[row * (B::kD / 4) + 2 * lane + 1] = {};
}

/// After: dq in 16 bits. A block takes 64 x 64 numbers: a thread the 32 that it would have in a product, and
/// then, by way of shared memory, pieces of rows.
template <class B>
__global__ void __launch_bounds__(kGroupThreads) narrow_queries(typename B::Element* dq, BackwardWork w) {
  using T = typename B::Element;
  __shared__ __align__(1024) char rows[kGroupRows * kSwizzledRow];
  wait_for_kernels_before();
  let_next_kernel_start();
  const AttentionSizes& s = w.sizes;
  const int of_head = w.q_tiles * B::kPieces, i = static_cast<int>(blockIdx.x), head = i / of_head,
            group = i % B::kPieces, tile = i % of_head / B::kPieces, thread = thread_of_group();
  const float4* from = w.dq + int64_t{i} * 8 * kGroupThreads + thread;
  float4 x[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = from[j * kGroupThreads];
#pragma unroll
  for (uint32_t j = 0; j < 8; ++j) {
    const auto row = static_cast<uint32_t>(row_of_thread()),
               column = static_cast<uint32_t>(column_of_thread());
    *reinterpret_cast<uint32_t*>(rows + swizzled(row, j) + column * 2) =
        packed<T>(x[j].x * s.scale, x[j].y * s.scale);
    *reinterpret_cast<uint32_t*>(rows + swizzled(row + 8, j) + column * 2) =
        packed<T>(x[j].z * s.scale, x[j].w * s.scale);
  }
  sync_block();
  const int piece = thread % 8, column = (B::kD == 64 ? 0 : 64 * group) + 8 * piece;
  T* to = dq + head / s.heads * s.q.batch + head % s.heads * s.q.head + column;
#pragma unroll
  for (int row = thread / 8; row < kGroupRows; row += kGroupThreads / 8) {
    const int query = tile * B::kQueries + (B::kD == 64 ? 64 * group : 0) + row;
    if (query < s.seq_q && column < s.dim)
      *reinterpret_cast<uint4*>(to + query * s.q.row) = *reinterpret_cast<const uint4*>(
          rows + swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(piece)));
  }
}

}  // namespace weft::cuda::hopper

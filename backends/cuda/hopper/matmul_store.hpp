#pragma once
#include "matmul_task.hpp"

// From a consumer's registers to c, or to sums of shares, which another kernel adds up.
namespace weft::cuda::hopper {

template <class T>
__device__ uint32_t packed_pair(float low, float high) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <class T>
__device__ float2 unpacked_pair(uint32_t pair) {
  return {widened(T{static_cast<uint16_t>(pair)}), widened(T{static_cast<uint16_t>(pair >> 16)})};
}

/// Adds the bias, or what c holds, to 64 columns of results from `column` on: rows `row` and `row` + 8 of
/// this thread.
template <class T>
__device__ void add_to_results(float* c, const MatmulTask& task, int row, int column, int batch) {
  column += 2 * (static_cast<int>(threadIdx.x) % 4);
  const auto* const bias = static_cast<const uint16_t*>(task.bias);
  const auto* const old = static_cast<const uint16_t*>(task.old);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int at = column + 8 * j;
    if (at >= task.columns) break;  // there are even numbers of columns
    if (bias) {
      const float2 x = unpacked_pair<T>(uint32_t{bias[at]} | uint32_t{bias[at + 1]} << 16);
      c[4 * j] += x.x, c[4 * j + 1] += x.y, c[4 * j + 2] += x.x, c[4 * j + 3] += x.y;
    }
    if (!old) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t of_row = int64_t{batch} * task.rows + row + 8 * half;
      if (row + 8 * half >= task.rows) break;
      const float2 x = unpacked_pair<T>(*reinterpret_cast<const uint32_t*>(old + of_row * task.columns + at));
      c[4 * j + 2 * half] += x.x, c[4 * j + 2 * half + 1] += x.y;
    }
  }
}

/// Stores a tile, 64 x 64 elements at a time, by way of this consumer's two buffers.
template <class T, class Tiles>
__device__ void store_results(float (&c)[kParts][Tiles::kColumns / 2], const CUtensorMap& to, char* buffers,
                              const MatmulTask& task, const TilePlace& place, int consumer) {
  constexpr int kBlocks = Tiles::kColumns / 64;
  static_assert(kParts * kBlocks % kStoreBuffers == 0, "each tile begins with the first buffer");
  const int column = place.column * Tiles::kColumns;
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / kWarp, lane = thread % kWarp;
  const int row = place.row * kTileRows, of_matrix = 16 * warp + lane % 8 + 8 * (lane / 8 % 2),
            half = lane / 16;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int first = row + part * kPart;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      char* const buffer = buffers + (part * kBlocks + n) % kStoreBuffers * kBlockBytes;
      float* const results = c[part] + 32 * n;
      if (task.bias || task.old)
        add_to_results<T>(results, task, first + 16 * warp + lane / 4, column + 64 * n, place.batch);
      if (thread == 0) wait_until_read<kStoreBuffers - 1>();
      sync_threads(1 + consumer, 128);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        store_matrices(
            buffer + swizzled(static_cast<uint32_t>(of_matrix), static_cast<uint32_t>(2 * j + half)),
            packed_pair<T>(results[8 * j], results[8 * j + 1]),
            packed_pair<T>(results[8 * j + 2], results[8 * j + 3]),
            packed_pair<T>(results[8 * j + 4], results[8 * j + 5]),
            packed_pair<T>(results[8 * j + 6], results[8 * j + 7]));
      show_shared_writes();
      sync_threads(1 + consumer, 128);
      if (thread == 0) {
        store_tile(to, buffer, column + 64 * n, first, place.batch);
        end_of_stores();
      }
    }
  }
}

/// Stores a tile of the sums of a share, in f32.
template <class Tiles>
__device__ void store_sums(const float (&c)[kParts][Tiles::kColumns / 2], const MatmulTask& task,
                           const TilePlace& place) {
  const int thread = static_cast<int>(threadIdx.x) % 128, of_part = thread / kWarp * 16 + thread % kWarp / 4;
  const int column = place.column * Tiles::kColumns + 2 * (thread % 4);
  const int share = place.first_slice / task.share_slices;
  float* const to = task.sums + (int64_t{share} * task.batch + place.batch) * task.rows * task.columns;
#pragma unroll
  for (int i = 0; i < 2 * kParts; ++i) {
    const int at = place.row * kTileRows + i / 2 * kPart + of_part + 8 * (i % 2);
    if (at >= task.rows) continue;
    float* const of_row = to + int64_t{at} * task.columns;
#pragma unroll
    for (int j = 0; j < Tiles::kColumns / 8; ++j)
      if (column + 8 * j < task.columns)
        *reinterpret_cast<float2*>(of_row + column + 8 * j) = {c[i / 2][4 * j + 2 * (i % 2)],
                                                               c[i / 2][4 * j + 2 * (i % 2) + 1]};
  }
}

/// Adds up the sums of the shares, and the bias or what c holds. `elements` of c; a thread takes four, which
/// are of one row.
template <class T>
__global__ void __launch_bounds__(256) add_shares(const float* sums, T* c, const T* bias, int64_t elements,
                                                  int columns, int shares, bool accumulate) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = (int64_t{blockIdx.x} * 256 + threadIdx.x) * 4;
  if (at >= elements) return;
  float4 sum = *reinterpret_cast<const float4*>(sums + at);
  for (int i = 1; i < shares; ++i) {
    const float4 x = *reinterpret_cast<const float4*>(sums + i * elements + at);
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
  }
  const auto add = [&](const T* from) {
    const uint2 x = *reinterpret_cast<const uint2*>(from);
    const float2 low = unpacked_pair<T>(x.x), high = unpacked_pair<T>(x.y);
    sum.x += low.x, sum.y += low.y, sum.z += high.x, sum.w += high.y;
  };
  if (bias) add(bias + at % columns);
  if (accumulate) add(c + at);
  *reinterpret_cast<uint2*>(c + at) = {packed_pair<T>(sum.x, sum.y), packed_pair<T>(sum.z, sum.w)};
}

}  // namespace weft::cuda::hopper

#include "groups.h"

#include <cuda_bf16.h>

#include "check.h"

namespace weft::mha {

namespace {

constexpr int kThreads = 256, kPiece = 8;

struct alignas(16) Piece {
  __nv_bfloat16 at[kPiece];
};

/// A thread has 8 numbers of a row. Sums are f32, in the order of heads.
__global__ void __launch_bounds__(kThreads) add_heads(Groups g, const Piece* each, Piece* sums) {
  const int64_t pieces = g.dim / kPiece, i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= g.rows * pieces) return;
  const int64_t row = i / pieces, first = row / g.block * g.group * g.block + row % g.block;
  float sum[kPiece] = {};
  for (int64_t h = 0; h < g.group; ++h) {
    const Piece x = each[(first + h * g.block) * pieces + i % pieces];
#pragma unroll
    for (int e = 0; e < kPiece; ++e) sum[e] += __bfloat162float(x.at[e]);
  }
  Piece y;
#pragma unroll
  for (int e = 0; e < kPiece; ++e) y.at[e] = __float2bfloat16(sum[e]);
  sums[i] = y;
}

}  // namespace

bool is_compiled() {
  cudaFuncAttributes unused;
  const bool found = cudaFuncGetAttributes(&unused, add_heads) == cudaSuccess;
  cudaGetLastError();
  return found;
}

void sum_groups(const Groups& g, const void* each, void* sums, cudaStream_t stream) {
  const int64_t pieces = g.rows * (g.dim / kPiece), blocks = (pieces + kThreads - 1) / kThreads;
  add_heads<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(g, static_cast<const Piece*>(each),
                                                                    static_cast<Piece*>(sums));
  check(cudaGetLastError());
}

}  // namespace weft::mha

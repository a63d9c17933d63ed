#pragma once
#include "../attention_order.hpp"
#include "attention_split_parts.hpp"

// What the kernels of attention's gradients of f32 are told (attention_split_grad.hpp), and those before and
// after the products.
namespace weft::cuda::hopper {

/// Weights and their gradients are scaled, so that their parts are exact down to 2^-141.
inline constexpr float kWeightScale = 0x1p32f;
inline constexpr int kPieceFloats = kTile * kTile;  // what 64 keys add to dq of 64 queries

/// Of some heads of a call.
struct SplitGradWork {
  AttentionSizes sizes;
  TileOrder order;
  int first_head, heads;  ///< of k and v, of the whole batch
  int q_tiles, k_tiles;   ///< of a head
  const float *q, *k, *v, *y, *dy, *lse;
  float *dq, *dk, *dv;
  float* pieces;  ///< [heads of q, q_tiles, k_tiles, kPieceFloats]

  __device__ int first_q_head() const { return first_head * sizes.shared_by; }
};

/// The shift of a row's scores, and the sum of its y dy.
struct alignas(8) SplitRow {
  float shift, delta;
};

struct SplitGradShared {
  char k[kSplitTileBytes], v[kSplitTileBytes], q[kSplitTileBytes], dy[kSplitTileBytes];
  SplitRow rows[kTile];
};

/// 64 keys, and the steps of 64 queries that see them, of each head that shares them.
struct SplitGradTile {
  int rank, first_key, from, behind, steps, head, member;
  int64_t at_k;
};
struct SplitGradStep {
  int first, head;  ///< head: of the whole batch
  int64_t at_q;
};

__device__ inline SplitGradTile split_tile(const SplitGradWork& w, int i) {
  const AttentionSizes& of = w.sizes;
  const auto [rank, head] = w.order.place(i);
  const int heads = of.heads / of.shared_by;
  SplitGradTile t;
  t.rank = rank, t.first_key = rank * kTile, t.head = w.first_head + head, t.member = t.head / heads;
  t.at_k = t.member * of.k.batch + t.head % heads * of.k.head;
  t.behind = of.seq_q - of.seq_k;
  t.from = of.causal ? larger(0, t.first_key + t.behind) / kTile * kTile : 0;
  t.steps = larger(0, w.q_tiles - t.from / kTile) * of.shared_by;
  return t;
}
__device__ inline SplitGradStep first_step(const SplitGradWork& w, const SplitGradTile& t) {
  const int head = t.head * w.sizes.shared_by;
  return {t.from, head, t.member * w.sizes.q.batch + head % w.sizes.heads * w.sizes.q.head};
}
__device__ inline SplitGradStep step_after(SplitGradStep s, const SplitGradWork& w, const SplitGradTile& t) {
  if ((s.first += kTile) >= w.sizes.seq_q) s.first = t.from, ++s.head, s.at_q += w.sizes.q.head;
  return s;
}
__device__ inline float* piece_of(const SplitGradWork& w, const SplitGradTile& t, const SplitGradStep& s) {
  const int64_t tile = (s.head - w.first_q_head()) * int64_t{w.q_tiles} + s.first / kTile;
  return w.pieces + (tile * w.k_tiles + t.rank) * kPieceFloats;
}
/// lse of row `i` of a step; 0 beyond the last one. Weights of rows of -inf are shifted by 0.
__device__ inline float lse_of(const SplitGradWork& w, const SplitGradStep& s, int i) {
  if (i >= kTile || s.first + i >= w.sizes.seq_q) return 0;
  return w.lse[int64_t{s.head} * w.sizes.seq_q + s.first + i];
}
__device__ inline float shift_of(float lse) { return lse == -INFINITY ? 0 : lse; }

/// dq of 64 queries from its pieces, in the order of the keys. Four blocks have a tile.
inline constexpr int kJoinThreads = 256, kJoinBlocks = 4;
static __global__ void __launch_bounds__(kJoinThreads) join_pieces(const __grid_constant__ SplitGradWork w) {
  constexpr int kEach = kPieceFloats / 4 / kJoinThreads / kJoinBlocks;
  wait_for_kernels_before();
  let_next_kernel_start();
  const AttentionSizes& of = w.sizes;
  const int tile = static_cast<int>(blockIdx.x) / kJoinBlocks, first = tile % w.q_tiles * kTile,
            head = w.first_q_head() + tile / w.q_tiles;
  const int at =
      static_cast<int>(blockIdx.x) % kJoinBlocks * kJoinThreads * kEach + static_cast<int>(threadIdx.x);
  const int n = (of.visible(smaller(first + kTile, of.seq_q) - 1) + kTile - 1) / kTile;
  const auto* from =
      reinterpret_cast<const float4*>(w.pieces + int64_t{tile} * w.k_tiles * kPieceFloats) + at;
  float4 sum[kEach] = {};
#pragma unroll 4
  for (int i = 0; i < n; ++i, from += kPieceFloats / 4)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const float4 x = from[j * kJoinThreads];
      sum[j].x += x.x, sum[j].y += x.y, sum[j].z += x.z, sum[j].w += x.w;
    }
  const float scale = of.scale / kWeightScale;
  const int thread = at % kGroupThreads, row = first + thread / kWarp * 16 + thread % kWarp / 4;
  float* const to = w.dq + head / of.heads * of.q.batch + head % of.heads * of.q.head + row * of.q.row;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int column = (at + j * kJoinThreads) / kGroupThreads * 8 + thread % 4 * 2;
    if (column >= of.dim) continue;
    const auto write = [&](int r, float x, float y) {
      if (row + r < of.seq_q) *reinterpret_cast<float2*>(to + r * of.q.row + column) = {x * scale, y * scale};
    };
    write(0, sum[j].x, sum[j].y), write(8, sum[j].z, sum[j].w);
  }
}

}  // namespace weft::cuda::hopper

#pragma once
#include "../split.hpp"
#include "matmul_tiles.hpp"
#include "split_store.hpp"

// A product of f32 matrices on tensor cores, by three bf16 for each number (split.hpp). Of b the parts are
// made before, by split_planes, since products read it from shared memory; a is split by the threads that
// multiply, whose registers products read, too. A block stays on its multiprocessor and takes tile after tile
// of c. One of its threads copies slices of a and b, 64 of k wide, into a ring of stages; two warpgroups
// multiply 64 rows each. While one of them splits its slice and adds up, the other one keeps the tensor cores
// busy.
//
// Each slice is added up on its own, from the least group of products to the largest, and then added to c
// with a rounding to nearest: tensor cores add up by cutting off, and would do so with all of c.
namespace weft::cuda::hopper {

/// A slice of a as the left factors of products: part, 16 of k, registers as Product wants them.
using SplitSlice = uint32_t[kSplitParts][kSlice / 16][4];

/// Two neighbours along k, from an f32 slice of a: of this thread's row (+ 8 if `below`), from k on.
template <Lies lies>
__device__ float2 pair_of_a(const char* a, int row, int k) {
  if constexpr (lies == Lies::along_k) {
    const char* const panel = a + k / kSplitPanel * kTileRows * kSwizzledRow;
    return *reinterpret_cast<const float2*>(
        panel + swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(k % kSplitPanel / 4)) + k % 4 * 4);
  } else {
    const char* const panel = a + row / kSplitPanel * kSlice * kSwizzledRow + row % 4 * 4;
    const auto piece = static_cast<uint32_t>(row % kSplitPanel / 4);
    return {*reinterpret_cast<const float*>(panel + swizzled(static_cast<uint32_t>(k), piece)),
            *reinterpret_cast<const float*>(panel + swizzled(static_cast<uint32_t>(k + 1), piece))};
  }
}

/// f(i, k, row, column): each pair of this thread's slice of a, in register i of 16 k. `row` is in the tile.
template <class F>
__device__ void for_each_pair(F f) {
  const int thread = static_cast<int>(threadIdx.x) - 128,
            lane = thread % kWarp;  // copying threads come first
  const int row = thread / kWarp * 16 + lane / 4;
#pragma unroll
  for (int k = 0; k < kSlice / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) f(i, k, row + i % 2 * 8, 16 * k + i / 2 * 8 + 2 * (lane % 4));
}

/// Splits this thread's part of a slice. False if it holds what is not finite; then part 0 has 0 there.
template <Lies lies>
__device__ bool split_slice(SplitSlice& to, const char* a) {
  bool all_finite = true;
  for_each_pair([&](int i, int k, int row, int at) {
    const float2 x = pair_of_a<lies>(a, row, at);
    SplitPair split;
    all_finite &= split_finite(split, x.x, x.y);
#pragma unroll
    for (int p = 0; p < kSplitParts; ++p) to[p][k][i] = split.part[p];
  });
  if (all_finite) return true;
  for_each_pair([&](int i, int k, int row, int at) {
    const float2 x = pair_of_a<lies>(a, row, at);
    SplitPair split;
    split_any(split, x.x, x.y);
#pragma unroll
    for (int p = 0; p < kSplitParts; ++p)
      to[p][k][i] = p == 0 ? finite_of<bf16>(split.part[0]) : split.part[p];
  });
  return false;
}
/// Part 0 again, with what is not finite.
template <Lies lies>
__device__ void show_infinite(SplitSlice& to, const char* a) {
  for_each_pair([&](int i, int k, int row, int at) {
    const float2 x = pair_of_a<lies>(a, row, at);
    SplitPair split;
    split_any(split, x.x, x.y);
    to[0][k][i] = split.part[0];
  });
}

/// c (+)= part pa of a by plane pb of b.
template <class Tiles, Lies of_b>
__device__ void multiply_parts(float (&c)[Tiles::kColumns / 2], const SplitSlice& a, int pa, const char* b,
                               SplitPlane pb, bool add) {
  const uint64_t right = operand_at<of_b>(b + static_cast<int>(pb) * Tiles::kBytesOfPlane, kBlockBytes);
#pragma unroll
  for (int k = 0; k < kSlice / 16; ++k)
    Product<bf16, Tiles::kColumns, Lies::along_k, of_b>::run(c, a[pa][k], right + k * kNextSixteen<of_b>,
                                                             add || k > 0);
}

/// Ends a group of products: c becomes c 2^-8, if other groups follow.
template <int n>
__device__ void end_of_group(float (&c)[n], bool scales) {
  end_of_products();
  wait_for_products<0>();
  hold(c);
  if (!scales) return;
#pragma unroll
  for (int i = 0; i < n; ++i) c[i] *= 1 / kSplitScale;
}

/// Adds the product of one slice to c.
template <class Tiles, Lies of_a, Lies of_b>
__device__ void multiply_slice(float (&c)[Tiles::kColumns / 2], const char* a, const char* b) {
  using enum SplitPlane;
  SplitSlice parts;
  float slice[Tiles::kColumns / 2];
  const bool all_finite = split_slice<of_a>(parts, a);
  const auto multiply = [&](int pa, SplitPlane pb, bool add) {
    multiply_parts<Tiles, of_b>(slice, parts, pa, b, pb, add);
  };
  begin_products();
  multiply(0, second, false), multiply(1, first, true), multiply(2, finite, true);
  end_of_group(slice, true);
  begin_products();
  multiply(0, first, true), multiply(1, finite, true);
  end_of_group(slice, true);
  if (!all_finite) show_infinite<of_a>(parts, a);
  begin_products();
  multiply(0, all, true);
  end_of_group(slice, false);
#pragma unroll
  for (int i = 0; i < Tiles::kColumns / 2; ++i) c[i] += slice[i];
}

/// Copies the slices of all tiles of this block. By one thread.
template <class Tiles, Lies of_a, Lies of_b>
__device__ void load_split_slices(const SplitStages<Tiles>& stages, const CUtensorMap& a,
                                  const CUtensorMap& b, const SplitTask& task) {
  constexpr int kRowsOfA = of_a == Lies::along_k ? kTileRows : kSlice,
                kPanelsOfA = (of_a == Lies::along_k ? kSlice : kTileRows) / kSplitPanel;
  constexpr int kRowsOfB = of_b == Lies::along_k ? Tiles::kColumns : kSlice,
                kPanelsOfB = of_b == Lies::along_k ? 1 : Tiles::kBlocks;
  RingPlace<Tiles::kStages> ring;
  for (int tile = blockIdx.x; tile < task.tiles(); tile += gridDim.x) {
    const TilePlace place = place_of(task, tile);
    const int row = uniform(place.row * kTileRows), column = uniform(place.column * Tiles::kColumns),
              batch = uniform(place.batch);
    for (int i = place.first_slice; i < place.end_slice; ++i, ring.next()) {
      const int stage = uniform(ring.stage), k = uniform(i * kSlice);
      Barrier& full = stages.full[stage];
      stages.empty[stage].wait(ring.phase ^ 1);
      full.arrive_expecting(kSplitBytesOfA + kSplitPlanes * kPanelsOfB * kRowsOfB * kSwizzledRow);
      for (int p = 0; p < kPanelsOfA; ++p) {
        char* const to = stages.a(stage) + p * kRowsOfA * kSwizzledRow;
        const int at = p * kSplitPanel, of_batch = batch * task.a_step;
        if constexpr (of_a == Lies::along_k)
          load_tile(to, a, full, k + at, row, of_batch);
        else
          load_tile(to, a, full, row + at, k, of_batch);
      }
      for (int plane = 0; plane < kSplitPlanes; ++plane)
        for (int p = 0; p < kPanelsOfB; ++p) {
          char* const to = stages.b(stage) + plane * Tiles::kBytesOfPlane + p * kBlockBytes;
          const int of_batch = plane * task.matrices_b + batch * task.b_step;
          if constexpr (of_b == Lies::along_k)
            load_tile(to, b, full, k, column, of_batch);
          else
            load_tile(to, b, full, column + p * 64, k, of_batch);
        }
    }
  }
}

template <class Tiles, Lies of_a, Lies of_b>
__device__ void multiply_split_tiles(const SplitStages<Tiles>& stages, const SplitTask& task) {
  RingPlace<Tiles::kStages> ring;
  for (int tile = blockIdx.x; tile < task.tiles(); tile += gridDim.x) {
    const TilePlace place = place_of(task, tile);
    float c[Tiles::kColumns / 2];
#pragma unroll
    for (float& x : c) x = 0;
    for (int i = place.first_slice; i < place.end_slice; ++i, ring.next()) {
      stages.full[ring.stage].wait(ring.phase);
      multiply_slice<Tiles, of_a, of_b>(c, stages.a(ring.stage), stages.b(ring.stage));
      if (threadIdx.x % kWarp == 0) stages.empty[ring.stage].arrive();
    }
    store_split_tile<Tiles>(c, task, place);
  }
}

template <class Tiles, Lies of_a, Lies of_b>
__global__ void __launch_bounds__(kMatmulThreads, 1)
    split_tiles(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                const __grid_constant__ SplitTask task) {
  extern __shared__ __align__(1024) char matmul_shared[];
  const SplitStages<Tiles> stages(matmul_shared);
  if (threadIdx.x == 0) {
    prefetch(a), prefetch(b);
    stages.init();
  }
  sync_block();
  wait_for_kernels_before();
  let_next_kernel_start();
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) load_split_slices<Tiles, of_a, of_b>(stages, a, b, task);
  } else {
    take_registers<240>();
    multiply_split_tiles<Tiles, of_a, of_b>(stages, task);
  }
}

}  // namespace weft::cuda::hopper

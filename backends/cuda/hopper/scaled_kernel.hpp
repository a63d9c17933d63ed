#pragma once
#include <type_traits>

#include "matmul_kernel.hpp"

// A product of matrices of 8-bit numbers with scales: c = (a b) a_scale b_scale + bias. Integers are added up
// as such, exactly, as long as 32 bits hold the sum. Floats go two ways:
//
// Wide (the default). a and b are widened to f16, which holds every 8-bit float, by `widen`; products of them
// are exact in f32, and the 16-bit tensor cores add them up: each sum of 16 terms and what was there keeps 25
// bits behind its largest term's first one and is cut off to an f32. With S = sum |a b| that is less than
// (16 + 1) 2^-25 S + 2^-23 S for each 16 k, below the op's bound gamma(16) S = 16 2^-24 S. Of fewer terms, as
// in a first one of n: the largest loses nothing, the others 2^-25 S each, so (n - 1) 2^-25 + 2^-23 against
// n 2^-24; two terms are cut off once, by 2^-23, and one is exact.
//
// Narrow, only where the caller allows the precision of bf16. The 8-bit tensor cores take a and b as they
// are, but of 32 products and what was there keep 13 bits behind the largest one's first: that may lose
// 33 2^-13 S, which no bound of f32 allows. So each 128 k are added up on their own and then added to c in
// f32: together they lose less than 132 2^-13 S, however large k is, and usually far less.
//
// How many bits are kept was measured by others: M. Khattak and M. Mikaitis, "Accurate models of NVIDIA
// tensor cores", 2025; DeepSeek-AI, "DeepSeek-V3 technical report", section 3.3.2, 2024.
namespace weft::cuda::hopper {

struct ScaledTask : MatmulTask {
  const float *a_scale = nullptr, *b_scale = nullptr;
  bool each_a = false, each_b = false;  ///< one for each row of a, of b; or one for all
};

inline constexpr int kSlice8 = 128;  // of k, of 8-bit numbers
using ScaledTiles = Tiling<128, 6, 2>;

/// f(results, row, column): this thread's pairs of a tile that are in c. results[0] and [1] are a row's
/// neighbours, [2] and [3] those of the row 8 below, which may be outside of c.
template <class Tiles, class F>
__device__ void each_four(float (&c)[kParts][Tiles::kColumns / 2], const ScaledTask& task,
                          const TilePlace& place, F f) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int first = place.row * kTileRows + thread / kWarp * 16 + thread % kWarp / 4;
  const int column = place.column * Tiles::kColumns + 2 * (thread % 4);
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int j = 0; j < Tiles::kColumns / 8; ++j)
      if (column + 8 * j < task.columns) f(c[part] + 4 * j, first + part * kPart, column + 8 * j);
}

/// The results times the scales, as the op has it: first that of a. `integers`: their bits are those of int.
template <class Tiles, bool integers>
__device__ void scale_results(float (&c)[kParts][Tiles::kColumns / 2], const ScaledTask& task,
                              const TilePlace& place) {
  const float of_a = *task.a_scale, of_b = *task.b_scale;
  each_four<Tiles>(c, task, place, [&](float* four, int row, int column) {
    const auto scale_a = [&](int r) { return !task.each_a ? of_a : r < task.rows ? task.a_scale[r] : 0; };
    const float a[2] = {scale_a(row), scale_a(row + 8)};
    const float b[2] = {task.each_b ? task.b_scale[column] : of_b,
                        task.each_b ? task.b_scale[column + 1] : of_b};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float sum = integers ? static_cast<float>(__float_as_int(four[i])) : four[i];
      four[i] = sum * a[i / 2] * b[i % 2];
    }
  });
}

/// Stores a tile of f32, with the bias.
template <class Tiles>
__device__ void store_wide(float (&c)[kParts][Tiles::kColumns / 2], const ScaledTask& task,
                           const TilePlace& place) {
  const auto* const bias = static_cast<const float*>(task.bias);
  each_four<Tiles>(c, task, place, [&](float* four, int row, int column) {
    const float2 x = bias ? float2{bias[column], bias[column + 1]} : float2{0, 0};
    float* const to = static_cast<float*>(task.c) + int64_t{row} * task.columns + column;
    if (row < task.rows) *reinterpret_cast<float2*>(to) = {four[0] + x.x, four[1] + x.y};
    if (row + 8 < task.rows)
      *reinterpret_cast<float2*>(to + int64_t{8} * task.columns) = {four[2] + x.x, four[3] + x.y};
  });
}

/// multiply_tile of 8-bit integers. What is in c are the bits of integers.
template <class Tiles, class After>
__device__ void multiply_integers(float (&c)[kParts][Tiles::kColumns / 2], const Stages<Tiles>& stages,
                                  RingPlace<Tiles::kStages>& ring, int slices, After after_last) {
  static_assert(kSlice8 / 32 == kSlice / 16, "a slice is as many products");
  int sums[kParts][Tiles::kColumns / 2];
  multiply_tile<int8_t, Tiles, Lies::along_k, Lies::along_k>(sums, stages, ring, slices, after_last);
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int i = 0; i < Tiles::kColumns / 2; ++i) c[part][i] = __int_as_float(sums[part][i]);
}

/// multiply_tile of 8-bit floats, 64 x 64 results at a time: while some are multiplied, those before are
/// added to c.
template <class A, class B, class Tiles, class After>
__device__ void multiply_narrow(float (&c)[kParts][Tiles::kColumns / 2], const Stages<Tiles>& stages,
                                RingPlace<Tiles::kStages>& ring, int slices, After after_last) {
  constexpr int kBlocks = Tiles::kBlocks, kInRow = Tiles::kColumns / 64;
  const auto release = [&](int stage) {
    if (threadIdx.x % kWarp == 0) stages.empty[stage].arrive();
  };
  float sums[2][32];
  const auto add = [&](int block) {
    hold(sums[block % 2]);
#pragma unroll
    for (int i = 0; i < 32; ++i) c[block / kInRow][32 * (block % kInRow) + i] += sums[block % 2][i];
  };
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int i = 0; i < Tiles::kColumns / 2; ++i) c[part][i] = 0;
  for (int i = 0; i < slices; ++i) {
    const uint32_t a = uniform_in_warp(shared_address(stages.a(ring.stage))), b = a + Tiles::kBytesOfA;
    stages.full[ring.stage].wait(ring.phase);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const uint64_t of_a = operand_at<Lies::along_k>(a + block / kInRow * kBlockBytes),
                     of_b = operand_at<Lies::along_k>(b + block % kInRow * kBlockBytes);
      begin_products();
#pragma unroll
      for (int k = 0; k < kSlice8 / 32; ++k)
        Product8<A, B>::run(sums[block % 2], of_a + k * kNextSixteen<Lies::along_k>,
                            of_b + k * kNextSixteen<Lies::along_k>, k > 0);
      end_of_products();
      if (block == 0) continue;
      wait_for_products<1>();
      add(block - 1);
    }
    if (i + 1 == slices) after_last();
    wait_for_products<0>();
    release(ring.stage);
    ring.next();
    add(kBlocks - 1);
  }
}

/// A and B: f16, or of 8 bits each; C: of the results.
template <class A, class B, class C, class Tiles>
__global__ void __launch_bounds__(kMatmulThreads, 1)
    scaled_tiles(const __grid_constant__ MatmulMaps maps, const __grid_constant__ ScaledTask task) {
  constexpr bool kWide = sizeof(A) == 2, kIntegers = std::is_same_v<A, int8_t>;
  constexpr Lies k = Lies::along_k;
  const auto load = [&](const Stages<Tiles>& stages) {
    load_slices<Tiles, k, k, kWide ? kSlice : kSlice8>(stages, maps.a, maps.b, task);
  };
  const auto multiply = [&](const Stages<Tiles>& stages) {
    const auto multiply_one = [&](auto& results, auto& ring, int slices, auto after_last) {
      if constexpr (kWide)
        multiply_tile<A, Tiles, k, k>(results, stages, ring, slices, after_last);
      else if constexpr (kIntegers)
        multiply_integers<Tiles>(results, stages, ring, slices, after_last);
      else
        multiply_narrow<A, B, Tiles>(results, stages, ring, slices, after_last);
    };
    if constexpr (sizeof(C) == 4) {
      take_turns(
          stages, task, [](const TilePlace&) {}, multiply_one,
          [&](auto& results, const TilePlace& place) {
            scale_results<Tiles, kIntegers>(results, task, place);
            store_wide<Tiles>(results, task, place);
          });
    } else {
      using Store = TileStore<C, Tiles>;
      take_turns(
          stages, task, [](const TilePlace&) {}, multiply_one,
          [&](auto& results, const TilePlace& place) {
            scale_results<Tiles, kIntegers>(results, task, place);
            Store(maps, task, stages.buffers(0), place).store(results);
          });
      Store::finish();
    }
  };
  run_block<Tiles>(maps, load, multiply);
}

}  // namespace weft::cuda::hopper

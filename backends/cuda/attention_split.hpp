#pragma once
#include "attention_tiles.hpp"
#include "split.hpp"

namespace weft::cuda {

/// Attention of f32 by the matrix instruction: each number is three bf16 (split.hpp), of which a tile in
/// shared memory has a plane each.
template <int D>
struct SplitWarps : Warps<bf16, D> {
  using Base = Warps<bf16, D>;
  using Stored = float;
  using Base::first_row, Base::kColumns, Base::kOut, Base::kStride, Base::kThreads, Base::lane;
  using typename Base::Out, typename Base::Scores;
  static constexpr int kStages = 1, kPlanes = kSplitParts;
  static constexpr int kPlane = kTile * kStride;  // elements
  static_assert(D == kTile, "both products have factors of as many columns");

  __device__ static float exp(float x) { return expf(x); }

  __device__ static void load(Tile<SplitWarps> to, const float* from, int64_t stride, int first, int rows,
                              int dim, bool aligned) {
    if (!aligned || !load_finite(to, from, stride, first, rows, dim))
      load_any(to, from, stride, first, rows, dim);
  }

  /// s = a bᵀ.
  __device__ static void multiply(Scores& s, Tile<SplitWarps> a, Tile<SplitWarps> b) {
    Rows rows;
    const bf16* const left = a.at + (first_row() + lane() % 16) * kStride + lane() / 16 * 8;
#pragma unroll
    for (int k = 0; k < D / 16; ++k)
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) load_matrices(rows.part[k][p], left + p * kPlane + 16 * k);
    const int r = lane() % 8 + lane() / 16 * 8, d = lane() / 8 % 2 * 8;
#pragma unroll
    for (int n = 0; n < kColumns / 2; n += 2) {
      float sums[2][4];
      multiply_columns(sums, rows, [&](uint32_t(&m)[4], int k, int p) {
        load_matrices(m, b.at + p * kPlane + (8 * n + r) * kStride + 16 * k + d);
      });
#pragma unroll
      for (int i = 0; i < 8; ++i) s.v[n + i / 4][i % 4] = sums[i / 4][i % 4];
    }
  }

  /// o += s b.
  __device__ static void mix(Out& o, Scores& s, Tile<SplitWarps> b, float*) {
    Rows rows;
    set(rows, s);
    const int r = lane() % 16, d = lane() / 16 * 8;
#pragma unroll
    for (int n = 0; n < kOut / 2; n += 2) {
      float sums[2][4];
      multiply_columns(sums, rows, [&](uint32_t(&m)[4], int k, int p) {
        load_matrices_transposed(m, b.at + p * kPlane + (16 * k + r) * kStride + 8 * n + d);
      });
#pragma unroll
      for (int i = 0; i < 8; ++i) o.v[n + i / 4][i % 4] += sums[i / 4][i % 4];
    }
  }

 private:
  /// 16 rows as the left factor: 16 k, part, registers.
  struct Rows {
    uint32_t part[kTile / 16][kPlanes][4];
  };

  __device__ static void store(Tile<SplitWarps> to, int r, int d, const SplitPair& low,
                               const SplitPair& high) {
    for (int p = 0; p < kPlanes; ++p) {
      const uint32_t both[] = {low.part[p], high.part[p]};
      memcpy(to.at + p * kPlane + r * kStride + d, both, sizeof both);
    }
  }
  /// Whole pieces of four numbers, all of which are under way before the first is split. False if some are
  /// not finite.
  __device__ static bool load_finite(Tile<SplitWarps> to, const float* from, int64_t stride, int first,
                                     int rows, int dim) {
    constexpr int kEach = kTile * D / 4 / kThreads;
    float4 x[kEach];
    const auto for_each = [](auto f) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int piece = static_cast<int>(threadIdx.x) + i * kThreads;
        f(i, piece / (D / 4), piece % (D / 4) * 4);
      }
    };
    for_each([&](int i, int r, int d) {
      x[i] = {0, 0, 0, 0};
      if (first + r < rows && d < dim)
        x[i] = *reinterpret_cast<const float4*>(from + (first + r) * stride + d);
    });
    bool all_finite = true;
    for_each([&](int i, int r, int d) {
      SplitPair low, high;
      all_finite &= split_finite(low, x[i].x, x[i].y);
      all_finite &= split_finite(high, x[i].z, x[i].w);
      store(to, r, d, low, high);
    });
    return all_finite;
  }
  /// The same for any numbers, one after the other.
  __device__ static void load_any(Tile<SplitWarps> to, const float* from, int64_t stride, int first, int rows,
                                  int dim) {
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kTile * D / 4; i += kThreads) {
      const int r = i / (D / 4), d = i % (D / 4) * 4;
      const auto at = [&](int j) {
        return first + r < rows && d + j < dim ? from[(first + r) * stride + d + j] : 0.0f;
      };
      SplitPair low, high;
      split_any(low, at(0), at(1)), split_any(high, at(2), at(3));
      store(to, r, d, low, high);
    }
  }

  /// Scores as rows that are multiplied.
  __device__ static void set(Rows& rows, const Scores& s) {
    const auto for_each = [&](auto f) {
#pragma unroll
      for (int k = 0; k < kTile / 16; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          SplitPair of;
          f(of, s.v[2 * k + i / 2][i % 2 * 2], s.v[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
          for (int p = 0; p < kPlanes; ++p) rows.part[k][p][i] = of.part[p];
        }
    };
    bool all_finite = true;
    for_each([&](SplitPair& of, float low, float high) { all_finite &= split_finite(of, low, high); });
    if (!all_finite) for_each([](SplitPair& of, float low, float high) { split_any(of, low, high); });
  }

  /// The rows by 16 columns. `load(registers, k, plane)` loads 16 rows of these. Products of what is not
  /// finite are found by their sums, and made again as split.hpp says.
  template <class Load>
  __device__ static void multiply_columns(float (&c)[2][4], const Rows& rows, Load load) {
    add_groups<false>(c, rows, load);
    float nan_if_not = 0;
    for (int i = 0; i < 8; ++i) nan_if_not += 0 * c[i / 4][i % 4];
    if (any_of_warp(!(nan_if_not == 0))) add_groups<true>(c, rows, load);
  }
  /// Each group of products is added up by itself, and the groups with a rounding to nearest.
  template <bool kInfinite, class Load>
  __device__ static void add_groups(float (&c)[2][4], const Rows& rows, Load load) {
    float sums[kSplitParts][2][4] = {};
    const auto add = [&](int group, const uint32_t(&a)[4], const uint32_t(&b)[4]) {
      multiply_add<bf16>(sums[group][0], a, {b[0], b[1]});
      multiply_add<bf16>(sums[group][1], a, {b[2], b[3]});
    };
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
      uint32_t a[kPlanes][4], b[kPlanes][4];
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        load(b[p], k, p);
        for (int i = 0; i < 4; ++i) a[p][i] = rows.part[k][p][i];
      }
      add(0, a[0], b[0]);
      if (kInfinite) finite_of<bf16>(a[0], a[0]), finite_of<bf16>(b[0], b[0]);
      add(1, a[0], b[1]), add(2, a[0], b[2]);
      add(1, a[1], b[0]), add(2, a[1], b[1]), add(2, a[2], b[0]);
    }
    constexpr float kNext = 1 / kSplitScale;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      c[i / 4][i % 4] =
          fmaf(fmaf(sums[2][i / 4][i % 4], kNext, sums[1][i / 4][i % 4]), kNext, sums[0][i / 4][i % 4]);
  }
};

/// f(engine) with the engine for heads of `dim` numbers of this type.
template <class F>
Outcome with_engine(DType type, int64_t dim, F f) {
  const bool wide = dim > 64;
  if (type == DType::f16)
    return wide ? f(static_cast<Warps<f16, 128>*>(nullptr)) : f(static_cast<Warps<f16, 64>*>(nullptr));
  if (type == DType::bf16)
    return wide ? f(static_cast<Warps<bf16, 128>*>(nullptr)) : f(static_cast<Warps<bf16, 64>*>(nullptr));
  if (wide) return f(static_cast<Threads<float, 128>*>(nullptr));
  if constexpr (kHasMatrixUnits)
    return f(static_cast<SplitWarps<64>*>(nullptr));
  else
    return f(static_cast<Threads<float, 64>*>(nullptr));
}

}  // namespace weft::cuda

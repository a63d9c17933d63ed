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
  static constexpr bool kAsksFinite = true;
  static_assert(D == kTile, "both products have factors of as many columns");

  __device__ static float exp(float x) { return expf(x); }

  /// Of a tile a thread takes pieces of four numbers, each some rows below the one before.
  static constexpr int kRowsAtOnce = kThreads / (D / 4), kPieces = kTile / kRowsAtOnce;
  __device__ static int own_row() { return static_cast<int>(threadIdx.x) / (D / 4); }
  __device__ static int own_column() { return static_cast<int>(threadIdx.x) % (D / 4) * 4; }
  struct Fetched {
    float4 x[kPieces];
  };

  __device__ static void fetch(Fetched& to, const float* from, const RowsOfHead& of, int first) {
    const int left = of.aligned && own_column() < of.dim ? of.rows - first - own_row() : 0;
    from += (first + own_row()) * of.stride + own_column();
#pragma unroll
    for (int i = 0; i < kPieces; ++i, from += kRowsAtOnce * of.stride) {
      to.x[i] = {0, 0, 0, 0};
      if (i * kRowsAtOnce < left) to.x[i] = *reinterpret_cast<const float4*>(from);
    }
  }
  __device__ static bool store(Tile<SplitWarps> to, const Fetched& of_fetch, const float* from,
                               const RowsOfHead& of, int first) {
    return of.aligned && store_finite(to, of_fetch) ? true : load_any(to, from, of, first);
  }

  /// s = a bᵀ. `infinite`: some of a or b is not finite.
  __device__ static void multiply(Scores& s, Tile<SplitWarps> a, Tile<SplitWarps> b, bool infinite) {
    if (infinite)
      multiply_as<true>(s, a, b);
    else
      multiply_as<false>(s, a, b);
  }

  /// o += s b. `infinite`: some of b is not finite.
  __device__ static void mix(Out& o, Scores& s, Tile<SplitWarps> b, float*, bool infinite) {
    Rows rows;
    if (any_of_warp(!set_finite(rows, s) || infinite)) {
      set_any(rows, s);
      mix_as<true>(o, rows, b);
    } else {
      mix_as<false>(o, rows, b);
    }
  }

 private:
  /// 16 rows as the left factor: 16 k, part, registers.
  struct Rows {
    uint32_t part[kTile / 16][kPlanes][4];
  };

  template <bool kInfinite>
  __device__ static void multiply_as(Scores& s, Tile<SplitWarps> a, Tile<SplitWarps> b) {
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
      add_groups<kInfinite>(sums, rows, [&](uint32_t(&m)[4], int k, int p) {
        load_matrices(m, b.at + p * kPlane + (8 * n + r) * kStride + 16 * k + d);
      });
#pragma unroll
      for (int i = 0; i < 8; ++i) s.v[n + i / 4][i % 4] = sums[i / 4][i % 4];
    }
  }

  template <bool kInfinite>
  __device__ static void mix_as(Out& o, const Rows& rows, Tile<SplitWarps> b) {
    const int r = lane() % 16, d = lane() / 16 * 8;
#pragma unroll
    for (int n = 0; n < kOut / 2; n += 2) {
      float sums[2][4];
      add_groups<kInfinite>(sums, rows, [&](uint32_t(&m)[4], int k, int p) {
        load_matrices_transposed(m, b.at + p * kPlane + (16 * k + r) * kStride + 8 * n + d);
      });
#pragma unroll
      for (int i = 0; i < 8; ++i) o.v[n + i / 4][i % 4] += sums[i / 4][i % 4];
    }
  }

  __device__ static void store_piece(bf16* to, const SplitPair& low, const SplitPair& high) {
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const uint32_t both[] = {low.part[p], high.part[p]};
      memcpy(to + p * kPlane, both, sizeof both);
    }
  }
  /// False if some are not finite.
  __device__ static bool store_finite(Tile<SplitWarps> to, const Fetched& from) {
    float nan_if_not = 0;
    bf16* at = to.at + own_row() * kStride + own_column();
#pragma unroll
    for (int i = 0; i < kPieces; ++i, at += kRowsAtOnce * kStride) {
      SplitPair low, high;
      split_finite(low, from.x[i].x, from.x[i].y, nan_if_not);
      split_finite(high, from.x[i].z, from.x[i].w, nan_if_not);
      store_piece(at, low, high);
    }
    return nan_if_not == 0;
  }
  /// Loads any numbers, one after the other. False if some are not finite.
  __device__ static bool load_any(Tile<SplitWarps> to, const float* from, const RowsOfHead& of, int first) {
    bool all_finite = true;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kTile * D / 4; i += kThreads) {
      const int r = i / (D / 4), d = i % (D / 4) * 4;
      const auto at = [&](int j) {
        const float x = first + r < of.rows && d + j < of.dim ? from[(first + r) * of.stride + d + j] : 0.0f;
        all_finite &= is_finite(x);
        return x;
      };
      SplitPair low, high;
      split_any(low, at(0), at(1)), split_any(high, at(2), at(3));
      store_piece(to.at + r * kStride + d, low, high);
    }
    return all_finite;
  }

  /// f(parts, low, high): each pair of neighbouring scores.
  template <class F>
  __device__ static void set(Rows& rows, const Scores& s, F f) {
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        SplitPair of;
        f(of, s.v[2 * k + i / 2][i % 2 * 2], s.v[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int p = 0; p < kPlanes; ++p) rows.part[k][p][i] = of.part[p];
      }
  }
  /// Scores as rows that are multiplied. False if some are not finite.
  __device__ static bool set_finite(Rows& rows, const Scores& s) {
    float nan_if_not = 0;
    set(rows, s, [&](SplitPair& of, float low, float high) { split_finite(of, low, high, nan_if_not); });
    return nan_if_not == 0;
  }
  __device__ static void set_any(Rows& rows, const Scores& s) {
    set(rows, s, [](SplitPair& of, float low, float high) { split_any(of, low, high); });
  }

  /// The rows by 16 columns. `load(registers, k, plane)` loads 16 rows of these.
  /// Each group of products is added up by itself, and the groups with a rounding to nearest. kInfinite: what
  /// is not finite is treated as split.hpp says.
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

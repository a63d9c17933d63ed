#pragma once
#include <type_traits>

#include "kernel.hpp"

// Tiles of attention: 64 rows by 64 columns of scores, in the registers of a block, and the two products
// that make them and use them. An engine says how: by multiply-adds of f32 in every thread, or by the matrix
// instruction of 16-bit operands in every warp. The kernels of attention are written once over both.
//
// An engine's thread has kRows rows of the tile; lanes that share a row are neighbours, kSharers of them.
//   row(r)       row r of this thread, in the tile
//   column(c)    score c of each of its rows
//   at(s, r, c)  that score
//   out_column(e), out(o, r, e)  the same of a result, [64, D], which is whole after finish(o)
//   fetch, store  load a tile, in two steps: the first one may begin long before the second. store says
//                 whether all numbers are finite, where kAsksFinite; else it is true
namespace weft::cuda {

inline constexpr int kTile = 64;

/// How the rows of a head lie, of which tiles are loaded.
struct RowsOfHead {
  int64_t stride;
  int rows, dim;
  bool aligned;
};

/// 64 rows of an operand in shared memory, [64, D], zeros beyond its end.
template <class E>
struct Tile {
  typename E::Element* at;
  static constexpr int kElements = E::kPlanes * kTile * E::kStride;
};

/// Two operands that lie alike: fetch begins to load a tile of each, store ends it.
template <class E>
struct TileLoader {
  RowsOfHead of;
  typename E::Fetched a, b;

  using T = typename E::Stored;
  __device__ explicit TileLoader(const RowsOfHead& rows) : of(rows) {}
  __device__ void fetch(const T* from_a, const T* from_b, int first) {
    E::fetch(a, from_a, of, first), E::fetch(b, from_b, of, first);
  }
  __device__ bool store(Tile<E> to_a, Tile<E> to_b, const T* from_a, const T* from_b, int first) {
    const bool finite = E::store(to_a, a, from_a, of, first);
    return E::store(to_b, b, from_b, of, first) && finite;
  }
};

/// Waits for the whole block. Whether any thread has met what is not finite, as far as the engine asks.
template <class E>
__device__ bool sync_asking(bool all_finite) {
  if constexpr (E::kAsksFinite) return any_of_block(!all_finite);
  sync_block();
  return false;
}

/// Multiply-adds in f32: 256 threads, each with 4 x 4 scores. Elements are widened when they are loaded.
template <class T, int D>
struct Threads {
  using Stored = T;
  using Element = float;
  static constexpr int kD = D, kThreads = 256, kRows = 4, kColumns = 4, kOut = D / 16, kSharers = 16;
  static constexpr int kStride = D + 4, kStages = 1, kPlanes = 1;  // rows begin in different banks
  static constexpr bool kAsksFinite = false;
  static constexpr int kScratch = kTile * (kTile + 4);  // floats: the scores, for other threads of their rows
  struct Scores {
    float v[kRows][kColumns];
  };
  struct Out {
    float v[kRows][kOut];
  };

  __device__ static int x() { return static_cast<int>(threadIdx.x) % 16; }
  __device__ static int y() { return static_cast<int>(threadIdx.x) / 16; }
  __device__ static int row(int r) { return 4 * y() + r; }
  __device__ static int column(int c) { return x() + 16 * c; }
  __device__ static int out_column(int e) { return 4 * x() + e % 4 + 64 * (e / 4); }
  __device__ static float& at(Scores& s, int r, int c) { return s.v[r][c]; }
  __device__ static float& out(Out& o, int r, int e) { return o.v[r][e]; }
  __device__ static void finish(Out&) {}
  __device__ static float exp(float x) { return expf(x); }

  struct Fetched {};
  __device__ static void fetch(Fetched&, const T*, const RowsOfHead&, int) {}
  __device__ static bool store(Tile<Threads> to, const Fetched&, const T* from, const RowsOfHead& of,
                               int first) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * D; i += kThreads) {
      const int r = i / D, d = i % D;
      to.at[r * kStride + d] =
          first + r < of.rows && d < of.dim ? widened(from[(first + r) * of.stride + d]) : 0.0f;
    }
    return true;
  }

  /// s = a bᵀ.
  __device__ static void multiply(Scores& s, Tile<Threads> a, Tile<Threads> b, bool) {
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) s.v[r][c] = 0;
    for (int d = 0; d < D; d += 4) {
      float left[kRows][4], right[kColumns][4];
      for (int r = 0; r < kRows; ++r) read(left[r], a.at + row(r) * kStride + d);
      for (int c = 0; c < kColumns; ++c) read(right[c], b.at + column(c) * kStride + d);
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < kRows; ++r)
          for (int c = 0; c < kColumns; ++c) s.v[r][c] = fmaf(left[r][i], right[c][i], s.v[r][c]);
    }
  }

  /// o += s b. A row of s is read by the threads that made it, which are in one warp.
  __device__ static void mix(Out& o, Scores& s, Tile<Threads> b, float* scratch, bool) {
    constexpr int kWide = kTile + 4;
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) scratch[row(r) * kWide + column(c)] = s.v[r][c];
    sync_warp();
    for (int k = 0; k < kTile; k += 4) {
      float left[kRows][4];
      for (int r = 0; r < kRows; ++r) read(left[r], scratch + row(r) * kWide + k);
      for (int i = 0; i < 4; ++i)
        for (int e = 0; e < kOut; e += 4) {
          float right[4];
          read(right, b.at + (k + i) * kStride + out_column(e));
          for (int r = 0; r < kRows; ++r)
            for (int j = 0; j < 4; ++j) o.v[r][e + j] = fmaf(left[r][i], right[j], o.v[r][e + j]);
        }
    }
    sync_warp();
  }

 private:
  __device__ static void read(float (&to)[4], const float* from) {
    const auto four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
};

/// The matrix instruction: 4 warps, each with 16 rows. Scores that are multiplied again are rounded to the
/// operands' type, and what the rounding lost is multiplied, too: in 2 parts of f16 or 3 of bf16, which keep
/// 22 and 24 bits of an f32. f16 has few exponents: each row of scores is scaled by a power of two, so that
/// the largest one so far is about 2^14.
template <class T, int D>
struct Warps {
  using Stored = T;
  using Element = T;
  static constexpr int kD = D, kThreads = 4 * kWarp, kRows = 2, kColumns = 16, kOut = D / 4, kSharers = 4;
  static constexpr int kStride = D + 8;  // 16 bytes on: the rows of a matrix lie in different banks
  static constexpr int kStages = 2, kPlanes = 1, kScratch = 0;
  static constexpr bool kAsksFinite = false;
  struct Scores {
    float v[kColumns / 2][4];
  };
  static constexpr bool kScaled = std::is_same_v<T, f16>;
  static constexpr int kParts = std::is_same_v<T, f16> ? 2 : 3;
  struct Out {
    float v[kOut / 2][4];
    float scale[kRows];  // 0: none yet
  };

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / kWarp * 16; }
  __device__ static int row(int r) { return first_row() + lane() / 4 + 8 * r; }
  __device__ static int column(int c) { return 8 * (c / 2) + 2 * (lane() % 4) + c % 2; }
  __device__ static int out_column(int e) { return column(e); }
  __device__ static float& at(Scores& s, int r, int c) { return s.v[c / 2][2 * r + c % 2]; }
  __device__ static float& out(Out& o, int r, int e) { return o.v[e / 2][2 * r + e % 2]; }
  __device__ static void finish(Out& o) {
    for (int r = 0; kScaled && r < kRows; ++r)
      for (int e = 0; e < kOut; ++e) out(o, r, e) /= o.scale[r] == 0 ? 1 : o.scale[r];
  }
  __device__ static float exp(float x) { return fast_exp(x); }

  struct Fetched {};
  __device__ static void fetch(Fetched&, const T*, const RowsOfHead&, int) {}
  __device__ static bool store(Tile<Warps> to, const Fetched&, const T* from, const RowsOfHead& of,
                               int first) {
    if (of.aligned) {
      for (int i = static_cast<int>(threadIdx.x); i < kTile * D / 8; i += kThreads) {
        const int r = i / (D / 8), d = i % (D / 8) * 8;
        const bool inside = first + r < of.rows && d < of.dim;
        copy_async(to.at + r * kStride + d, inside ? from + (first + r) * of.stride + d : from, inside);
      }
      return true;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kTile * D; i += kThreads) {
      const int r = i / D, d = i % D;
      to.at[r * kStride + d] = first + r < of.rows && d < of.dim ? from[(first + r) * of.stride + d] : T{0};
    }
    return true;
  }

  /// s = a bᵀ.
  __device__ static void multiply(Scores& s, Tile<Warps> a, Tile<Warps> b, bool) {
#pragma unroll
    for (int n = 0; n < kColumns / 2; ++n)
      for (int i = 0; i < 4; ++i) s.v[n][i] = 0;
    const int r = lane() % 8 + lane() / 16 * 8, d = lane() / 8 % 2 * 8;
    const T* left = a.at + (first_row() + lane() % 16) * kStride + lane() / 16 * 8;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      uint32_t rows[4];
      load_matrices(rows, left + 16 * k);
#pragma unroll
      for (int n = 0; n < kColumns / 2; n += 2) {
        uint32_t m[4];
        load_matrices(m, b.at + (8 * n + r) * kStride + 16 * k + d);
        multiply_add<T>(s.v[n], rows, {m[0], m[1]});
        multiply_add<T>(s.v[n + 1], rows, {m[2], m[3]});
      }
    }
  }

  /// o += s b.
  __device__ static void mix(Out& o, Scores& s, Tile<Warps> b, float*, bool) {
    if (kScaled) scale(o, s);
    const int r = lane() % 16, d = lane() / 16 * 8;
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
      uint32_t a[kParts][4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        split(a, i, s.v[2 * k + i / 2][i % 2 * 2], s.v[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int n = 0; n < kOut / 2; n += 2) {
        uint32_t m[4];
        load_matrices_transposed(m, b.at + (16 * k + r) * kStride + 8 * n + d);
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          if (part == 1) finite_of<T>(m, m);  // parts of a weight may have another sign, or be 0
          multiply_add<T>(o.v[n], a[part], {m[0], m[1]});
          multiply_add<T>(o.v[n + 1], a[part], {m[2], m[3]});
        }
      }
    }
  }

 private:
  __device__ static void scale(Out& o, Scores& s) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float most = 0;
      for (int c = 0; c < kColumns; ++c) most = fmaxf(most, fabsf(at(s, r, c)));
      most = largest_of<kSharers>(most);
      const float before = o.scale[r];
      if (most > 0 && (before == 0 || most * before > 32768.0f)) {
        const int exponent = static_cast<int>(as_bits(most) >> 23);  // 127: most is about 1
        const int wanted = 127 + 14 + 127 - exponent;
        o.scale[r] = as_float(static_cast<uint32_t>(wanted < 254 ? wanted : 254) << 23);
        for (int e = 0; before != 0 && e < kOut; ++e) out(o, r, e) *= o.scale[r] / before;
      }
      for (int c = 0; c < kColumns; ++c) at(s, r, c) *= o.scale[r];
    }
  }
  /// Register i of each part of two neighbouring scores.
  __device__ static void split(uint32_t (&parts)[kParts][4], int i, float low, float high) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const uint32_t pair = packed<T>(low, high);
      parts[part][i] = pair;
      low -= widened(T{static_cast<uint16_t>(pair)}), high -= widened(T{static_cast<uint16_t>(pair >> 16)});
    }
  }
};

}  // namespace weft::cuda

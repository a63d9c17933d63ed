#pragma once
#include "../split.hpp"
#include "attention_parts.hpp"

// Tiles of 64 x 64 f32 as three bf16 each (split.hpp), and their products by a warpgroup. The parts of a tile
// lie in shared memory one after the other, each as Product wants its operands.
//
// Parts are not scaled here, so that products of different parts are added up in one sum. They are exact for
// numbers from 2^-109 to 2^67, and within 2^-134 of smaller ones.
namespace weft::cuda::hopper {

inline constexpr uint32_t kPartBytes = kTile * kSwizzledRow, kSplitTileBytes = kSplitParts * kPartBytes;
static_assert(kTile == kGroupRows && kTile == kPanel);

/// A tile of f32 on its way to its parts: each thread has 8 neighbours of every 16th row.
struct SplitFetch {
  static constexpr int kRowsAtOnce = kGroupThreads / 8, kRows = kTile / kRowsAtOnce;
  float4 x[kRows][2];

  __device__ static int row() { return thread_of_group() / 8; }
  __device__ static int piece() { return thread_of_group() % 8; }
  /// Of rows of a multiple of 4 numbers, which begin at multiples of 16 bytes.
  __device__ void load(const float* from, const RowsOfHead& of, int first) {
    from += (first + row()) * of.stride + piece() * 8;
    const int left = of.rows - first - row(), columns = of.dim - piece() * 8;
#pragma unroll
    for (int i = 0; i < kRows; ++i, from += kRowsAtOnce * of.stride)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        x[i][j] = {0, 0, 0, 0};
        if (i * kRowsAtOnce < left && 4 * j < columns) x[i][j] = reinterpret_cast<const float4*>(from)[j];
      }
  }
  /// Of its part of a row and that of another tile.
  __device__ float dot(const SplitFetch& by, int i) const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float4 &a = x[i][j], &b = by.x[i][j];
      sum = fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
    }
    return sum;
  }
};

/// The parts of two neighbours, not scaled. `size` becomes infinite or NaN if a number is too large for them.
__device__ inline void split_plain(SplitPair& to, float low, float high, float& size) {
  size = fmaf(fabsf(low), 0x1p60f, fmaf(fabsf(high), 0x1p60f, size));
#pragma unroll
  for (int i = 0; i < kSplitParts; ++i) {
    const uint32_t pair = to.part[i] = packed<bf16>(low, high);
    if (i + 1 < kSplitParts) low -= as_float(pair << 16), high -= as_float(pair & 0xffff0000u);
  }
}
__device__ inline bool parts_hold(float size) { return size < INFINITY; }

/// Row i of this thread.
__device__ inline void store_parts(char* to, const SplitFetch& from, int i, float& size) {
  to += swizzled(static_cast<uint32_t>(SplitFetch::row()), static_cast<uint32_t>(SplitFetch::piece()));
  SplitPair pairs[4];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    split_plain(pairs[2 * j], from.x[i][j].x, from.x[i][j].y, size);
    split_plain(pairs[2 * j + 1], from.x[i][j].z, from.x[i][j].w, size);
  }
#pragma unroll
  for (int p = 0; p < kSplitParts; ++p)
    *reinterpret_cast<uint4*>(to + p * kPartBytes + i * SplitFetch::kRowsAtOnce * kSwizzledRow) = {
        pairs[0].part[p], pairs[1].part[p], pairs[2].part[p], pairs[3].part[p]};
}
__device__ inline void store_parts(char* to, const SplitFetch& from, float& size) {
#pragma unroll
  for (int i = 0; i < SplitFetch::kRows; ++i) store_parts(to, from, i, size);
}

/// The parts that each of the six products multiplies. The first five are added up beside the last one: sums
/// of tensor cores are cut off, and of products of first parts, which have 16 bits, little is lost.
inline constexpr int kLessProducts = 5;
__device__ constexpr int left_part(int i) { return i == 0 || i == 3 || i == 5 ? 0 : i == 2 ? 2 : 1; }
__device__ constexpr int right_part(int i) { return i == 0 ? 2 : i == 1 || i == 3 ? 1 : 0; }

/// Warps wait where they begin products that the unit has no room for. So work of the same warp that shall
/// go on beside products stands between them: `beside(k)` follows those of each 16 k.
inline constexpr int kSlices = kTile / 16;
static_assert(SplitFetch::kRows == kSlices);

/// main + less = a b of tiles in shared memory.
template <Lies of_a, Lies of_b, class F>
__device__ void multiply_tiles(float (&main)[32], float (&less)[32], const char* a, const char* b, F beside) {
  const uint64_t left = operand_at<of_a>(a), right = operand_at<of_b>(b);
  begin_products();
#pragma unroll
  for (int k = 0; k < kSlices; ++k) {
    const auto product = [&](float(&c)[32], int i, bool add) {
      Product<bf16, kTile, of_a, of_b>::run(
          c, left + (left_part(i) * kPartBytes >> 4) + k * kNextSixteen<of_a>,
          right + (right_part(i) * kPartBytes >> 4) + k * kNextSixteen<of_b>, add);
    };
    product(main, kLessProducts, k > 0);
#pragma unroll
    for (int i = 0; i < kLessProducts; ++i) product(less, i, k + i > 0);
    beside(k);
  }
  end_of_products();
}

/// A tile of scores as the left factor of products, in registers.
struct SplitFactor {
  uint32_t part[kSplitParts][kTile / 16][4];

  /// 16 columns of s.
  __device__ void set(const float (&s)[32], int k, float& size) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      SplitPair pair;
      split_plain(pair, s[8 * k + 2 * i], s[8 * k + 2 * i + 1], size);
#pragma unroll
      for (int p = 0; p < kSplitParts; ++p) part[p][k][i] = pair.part[p];
    }
  }
  __device__ void store(char* to, int k) const {
    const int lane = thread_of_group() % kWarp,
              row = thread_of_group() / kWarp * 16 + lane % 8 + lane / 8 % 2 * 8;
    to += swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(2 * k + lane / 16));
#pragma unroll
    for (int p = 0; p < kSplitParts; ++p)
      store_matrices(to + p * kPartBytes, part[p][k][0], part[p][k][1], part[p][k][2], part[p][k][3]);
  }
  /// 16 k of main, or of less, of this b, of a tile b whose rows are k.
  template <bool kMain>
  __device__ void multiply(float (&c)[32], const char* b, int k) const {
    constexpr int kFrom = kMain ? kLessProducts : 0, kTo = kMain ? kLessProducts + 1 : kLessProducts;
    const uint64_t right = operand_at<Lies::along_m>(b);
#pragma unroll
    for (int i = kFrom; i < kTo; ++i)
      Product<bf16, kTile, Lies::along_k, Lies::along_m>::run(
          c, part[left_part(i)][k],
          right + (right_part(i) * kPartBytes >> 4) + k * kNextSixteen<Lies::along_m>, k > 0 || i > kFrom);
  }
};

/// x += of products, which have ended.
__device__ inline void add_products(float (&x)[32], float (&of)[32]) {
  hold(of);
#pragma unroll
  for (int i = 0; i < 32; ++i) x[i] += of[i];
  hold(x);
}

/// Rows of a result from `first` on, as far as there are some, of `dim` columns.
__device__ inline void write_rows(float* to, int64_t stride, const float (&x)[32], int first, int rows,
                                  int dim, float scale) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = first + row_of_thread() + 8 * r;
    float* const at = to + row * stride + column_of_thread();
    const int columns = row < rows ? dim - column_of_thread() : 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (8 * i < columns)
        *reinterpret_cast<float2*>(at + 8 * i) = {x[4 * i + 2 * r] * scale, x[4 * i + 2 * r + 1] * scale};
  }
}

}  // namespace weft::cuda::hopper

#pragma once
#include "matmul_tiles.hpp"

// From a consumer's registers to c, by way of its buffers in shared memory: 64 x 64 elements at a time, which
// are a block. Or to sums of shares, which another kernel adds up.
namespace weft::cuda::hopper {

/// gelu by tanh, of halves. With u = scale (x + cube x^3), p = (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), and
/// unlike 1 + tanh, the quotient loses nothing where it is small. A warp computes while no other of its
/// scheduler does, so that elements are taken together, step by step.
struct Gelu {
  static constexpr int kTogether = 8;
  static constexpr float kScale = 0.7978845608028654f, kCube = 0.044715f;  // sqrt(2 / pi)
  static constexpr float kPower = -2 * kScale * 1.4426950408889634f;       // of 2

  /// p of x, whose square is s.
  static __device__ void shares(float (&p)[kTogether], const float (&x)[kTogether],
                                const float (&s)[kTogether]) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) p[i] = x[i] * fmaf(s[i], kPower * kCube, kPower);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(p[i]));
#pragma unroll
    for (int i = 0; i < kTogether; ++i) p[i] += 1;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(p[i]));
  }
  static __device__ void apply(float (&x)[kTogether]) {
    float p[kTogether], s[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) s[i] = x[i] * x[i];
    shares(p, x, s);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) x[i] *= p[i];
  }
  /// y times the slope at x: p + x p', p' = 2 p (1 - p) u'. Beyond 40 p is 0 or 1, and up to there no power
  /// of x overflows.
  static __device__ void times_slope(float (&y)[kTogether], float (&x)[kTogether]) {
    float p[kTogether], s[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      asm("min.NaN.f32 %0, %0, 0f42200000;\n\tmax.NaN.f32 %0, %0, 0fC2200000;" : "+f"(x[i]));
#pragma unroll
    for (int i = 0; i < kTogether; ++i) s[i] = x[i] * x[i];
    shares(p, x, s);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) x[i] *= (1 - p[i]) * fmaf(s[i], 6 * kScale * kCube, 2 * kScale);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) y[i] *= fmaf(p[i], x[i], p[i]);
  }
};

/// Places of a thread in a block: as its results lie, which are rows `of_matrix` of the 8 x 8 matrices that
/// store_matrices takes from this warp; and for copies, four pieces of 16 bytes, of every 16th row.
struct BlockPlace {
  int of_all = anew(static_cast<int>(threadIdx.x)), consumer = of_all / 128 - 1, thread = of_all % 128;
  int warp = thread / kWarp, lane = thread % kWarp;
  int of_matrix = 16 * warp + lane % 8 + 8 * (lane / 8 % 2), half = lane / 16;
  int row = thread / 8, piece = thread % 8;
};

/// The blocks of a tile and the buffers of its consumer, which they go through. Made where they are needed:
/// while the tile is multiplied, its results leave few registers for anything else.
template <class T, class Tiles>
class TileBlocks {
 protected:
  static constexpr int kInRow = Tiles::kColumns / 64;  // blocks

  /// `buffers`: of all consumers.
  __device__ TileBlocks(const MatmulTask& task, char* buffers, const TilePlace& tile)
      : task_(task), tile_(tile) {
    const uint32_t own = shared_address(buffers) + place_.consumer * Tiles::kBuffers * kBlockBytes;
    const auto at = [&](int row, int piece) {
      return static_cast<uint32_t>(
          anew(static_cast<int>(own + swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(piece)))));
    };
    buffers_ = own, piece_ = at(place_.row, place_.piece);
#pragma unroll
    for (int j = 0; j < 4; ++j) matrices_[j] = at(place_.of_matrix, 2 * j + place_.half);
  }

  __device__ int row_of(int i) const { return tile_.row * kTileRows + i / kInRow * kPart; }
  __device__ int column_of(int i) const { return tile_.column * Tiles::kColumns + 64 * (i % kInRow); }
  /// In the buffer of number i: itself, this thread's place in matrix j, and its piece p to copy. Each is a
  /// register and a number that the instruction holds.
  __device__ void* buffer(int i) const { return in_buffer(buffers_, i); }
  __device__ void* matrix(int i, int j) const { return in_buffer(matrices_[j], i); }
  __device__ void* copied(int i, int p) const { return in_buffer(piece_ + 16 * p * kSwizzledRow, i); }
  __device__ void sync() const { sync_threads(1 + place_.consumer, 128); }

  /// f(results, i) for each block, with the bias.
  template <class F>
  __device__ void each_block(float (&c)[kParts][Tiles::kColumns / 2], F f) const {
#pragma unroll
    for (int i = 0; i < Tiles::kBlocks; ++i) {
      float* const results = c[i / kInRow] + 32 * (i % kInRow);
      if (task_.bias) add_bias(results, column_of(i));
      f(results, i);
    }
  }
  /// The buffer of number `turn`.
  __device__ void fill(int turn, const float* results) const {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      store_matrices(matrix(turn, j), packed<T>(results[8 * j], results[8 * j + 1]),
                     packed<T>(results[8 * j + 2], results[8 * j + 3]),
                     packed<T>(results[8 * j + 4], results[8 * j + 5]),
                     packed<T>(results[8 * j + 6], results[8 * j + 7]));
  }

 private:
  __device__ void add_bias(float* results, int column) const {
    column += 2 * (place_.lane % 4);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int at = column + 8 * j;
      if (at >= task_.columns) break;  // there are even numbers of columns
      const float2 x =
          unpacked_pair<T>(*reinterpret_cast<const uint32_t*>(static_cast<const T*>(task_.bias) + at));
      results[4 * j] += x.x, results[4 * j + 1] += x.y, results[4 * j + 2] += x.x, results[4 * j + 3] += x.y;
    }
  }

 protected:
  const BlockPlace place_;
  const MatmulTask& task_;
  const TilePlace& tile_;

 private:
  static __device__ void* in_buffer(uint32_t at, int i) {
    return __cvta_shared_to_generic(at + i % Tiles::kBuffers * kBlockBytes);
  }
  uint32_t buffers_, piece_, matrices_[4];
};

/// Results that need nothing but the product, and a second one by gelu. The TMA unit stores them.
template <class T, class Tiles>
class TileStore : TileBlocks<T, Tiles> {
  using Blocks = TileBlocks<T, Tiles>;
  using Blocks::buffer, Blocks::column_of, Blocks::each_block, Blocks::fill, Blocks::place_, Blocks::row_of,
      Blocks::sync, Blocks::task_, Blocks::tile_;

 public:
  __device__ TileStore(const MatmulMaps& maps, const MatmulTask& task, char* buffers, const TilePlace& tile)
      : Blocks(task, buffers, tile), maps_(maps) {}

  __device__ void begin() const {}
  __device__ void store(float (&c)[kParts][Tiles::kColumns / 2]) const {
    each_block(c, [&](float* results, int i) {
      if (task_.ending == Ending::gelu)
        store_with_gelu(results, i);
      else
        store_block(results, maps_.c, i, i);
    });
  }
  /// Before the block ends.
  static __device__ void finish() {
    if (threadIdx.x % 128 == 0) wait_until_stored<0>();
  }

 private:
  /// Block i by the buffer of number `turn`.
  __device__ void store_block(const float* results, const StoreMap& map, int i, int turn) const {
    if (place_.thread == 0) wait_until_read<Tiles::kBuffers - 1>();
    sync();
    fill(turn, results);
    show_shared_writes();
    sync();
    if (place_.thread != 0) return;
    store_tile(map, buffer(turn), column_of(i), row_of(i), tile_.batch);
    end_of_stores();
  }
  __device__ void store_with_gelu(float* results, int i) const {
    store_block(results, maps_.c, i, 2 * i);
#pragma unroll
    for (int j = 0; j < 32; j += Gelu::kTogether) {
      float x[Gelu::kTogether];
#pragma unroll
      for (int k = 0; k < Gelu::kTogether; ++k) x[k] = widened(narrowed<T>(results[j + k]));
      Gelu::apply(x);
#pragma unroll
      for (int k = 0; k < Gelu::kTogether; ++k) results[j + k] = x[k];
    }
    store_block(results, maps_.other, i, 2 * i + 1);
  }

  const MatmulMaps& maps_;
};

/// Results that an operand is added to, or whose slope of gelu they are multiplied with: kernels of their
/// own, since the slope takes more registers. The operand comes into the buffer in which the result replaces
/// it. Threads copy by themselves here: what the TMA unit is told now it would do after the copies of the
/// next slices.
template <class T, class Tiles, Ending ending>
class TileUpdate : TileBlocks<T, Tiles> {
  using Blocks = TileBlocks<T, Tiles>;
  using Blocks::column_of, Blocks::copied, Blocks::each_block, Blocks::fill, Blocks::matrix, Blocks::place_,
      Blocks::row_of, Blocks::sync, Blocks::task_, Blocks::tile_;

 public:
  __device__ TileUpdate(const MatmulMaps&, const MatmulTask& task, char* buffers, const TilePlace& tile)
      : Blocks(task, buffers, tile) {}

  /// Before the tile is multiplied: begins to copy the first blocks of the operand.
  __device__ void begin() const {
    sync();  // the buffers of the tile before have been read
    for (int i = 0; i < Tiles::kBuffers; ++i) load(i);
  }
  // A warp reads the rows that it writes, so that it need not wait for others between. A buffer is filled
  // again when all have come to the sync behind its last reading.
  __device__ void store(float (&c)[kParts][Tiles::kColumns / 2]) const {
    each_block(c, [&](float* results, int i) {
      if (i == 0)
        wait_for_copies<Tiles::kBuffers - 1>();
      else
        wait_for_copies<Tiles::kBuffers - 2>();
      sync();
      if (const int next = i - 1 + Tiles::kBuffers; i > 0) {
        if (next < Tiles::kBlocks)
          load(next);
        else
          end_of_copies();
      }
      combine(results, i);
      fill(i, results);
      sync();
      each_piece(task_.c, i, [](T* at, const void* from) {
        *reinterpret_cast<uint4*>(at) = *static_cast<const uint4*>(from);
      });
    });
  }
  static __device__ void finish() {}

 private:
  /// f(address in a matrix of c's size, place in the buffer) for this thread's pieces of block i that are
  /// there.
  template <class F>
  __device__ void each_piece(void* all, int i, F f) const {
    const int row = row_of(i) + place_.row, column = column_of(i) + 8 * place_.piece;
    if (column >= task_.columns) return;
    T* to = static_cast<T*>(all) + (int64_t{tile_.batch} * task_.rows + row) * task_.columns + column;
#pragma unroll
    for (int p = 0; p < 4; ++p, to += int64_t{16} * task_.columns)
      if (row + 16 * p < task_.rows) f(to, copied(i, p));
  }
  __device__ void load(int i) const {
    each_piece(task_.other, i, [](const T* from, void* to) { copy_async(to, from, true); });
    end_of_copies();
  }
  __device__ void combine(float* results, int i) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32_t pairs[4];
      load_matrices(pairs, matrix(i, j));
      float x[8], y[8];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 pair = unpacked_pair<T>(pairs[k]);
        x[2 * k] = pair.x, x[2 * k + 1] = pair.y;
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) y[k] = results[8 * j + k];
      if constexpr (ending == Ending::sum) {
#pragma unroll
        for (int k = 0; k < 8; ++k) y[k] += x[k];
      } else {
        Gelu::times_slope(y, x);
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) results[8 * j + k] = y[k];
    }
  }
};

/// The sums of a share, in f32.
template <class Tiles>
class TileSums {
 public:
  __device__ TileSums(const MatmulMaps&, const MatmulTask& task, char*, const TilePlace& tile)
      : task_(task), tile_(tile) {}

  __device__ void begin() const {}
  __device__ void store(const float (&c)[kParts][Tiles::kColumns / 2]) const {
    const int thread = anew(static_cast<int>(threadIdx.x)) % 128,
              of_part = thread / kWarp * 16 + thread % kWarp / 4;
    const int column = tile_.column * Tiles::kColumns + 2 * (thread % 4);
    float* const to =
        task_.sums + (int64_t{tile_.share} * task_.batch + tile_.batch) * task_.rows * task_.columns;
#pragma unroll
    for (int i = 0; i < 2 * kParts; ++i) {
      const int at = tile_.row * kTileRows + i / 2 * kPart + of_part + 8 * (i % 2);
      if (at >= task_.rows) continue;
      float* const of_row = to + int64_t{at} * task_.columns;
#pragma unroll
      for (int j = 0; j < Tiles::kColumns / 8; ++j)
        if (column + 8 * j < task_.columns)
          *reinterpret_cast<float2*>(of_row + column + 8 * j) = {c[i / 2][4 * j + 2 * (i % 2)],
                                                                 c[i / 2][4 * j + 2 * (i % 2) + 1]};
    }
  }
  static __device__ void finish() {}

 private:
  const MatmulTask& task_;
  const TilePlace& tile_;
};

/// What shares are added up to.
struct SharesSum {
  const float* sums;  ///< [shares][elements]
  void* c;
  const void *bias, *other;  ///< null, or what is added
  int64_t elements;
  int columns, shares;
};

/// Adds up the sums of the shares. A thread takes four elements, which are of one row.
template <class T>
__global__ void __launch_bounds__(256) add_shares(const __grid_constant__ SharesSum s) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = (int64_t{blockIdx.x} * 256 + threadIdx.x) * 4;
  if (at >= s.elements) return;
  float4 sum = *reinterpret_cast<const float4*>(s.sums + at);
  for (int i = 1; i < s.shares; ++i) {
    const float4 x = *reinterpret_cast<const float4*>(s.sums + i * s.elements + at);
    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
  }
  const auto add = [&](const void* from, int64_t i) {
    const uint2 x = *reinterpret_cast<const uint2*>(static_cast<const T*>(from) + i);
    const float2 low = unpacked_pair<T>(x.x), high = unpacked_pair<T>(x.y);
    sum.x += low.x, sum.y += low.y, sum.z += high.x, sum.w += high.y;
  };
  if (s.bias) add(s.bias, at % s.columns);
  if (s.other) add(s.other, at);
  *reinterpret_cast<uint2*>(static_cast<T*>(s.c) + at) = {packed<T>(sum.x, sum.y), packed<T>(sum.z, sum.w)};
}

}  // namespace weft::cuda::hopper

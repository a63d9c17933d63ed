#pragma once
#include "skinny_items.hpp"

// Products of one or two rows with weights of 16-bit elements. A warp reads a row of a weight, or a part of a
// long one, many pieces at a time into registers; the first ones of constant weights before the kernel waits
// for those before it. So the many warps of the next kernel read as soon as those of this one leave room.
namespace weft::cuda::skinny::vectors {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kOf = 8;      // elements of a piece
constexpr int kPieces = 8;  // that a lane reads at a time, of all products
constexpr int kMostXBytes = 40 << 10;

/// In shared memory; x follows.
template <int kRows>
struct Shared {
  float sums[kMostProducts][kWarps][kRows];
  float squares[kWarps][kRows];
  Item item;
};

/// x times the weights of a norm; adds the squares of x.
template <class T>
__device__ Bits16 weighted(const Bits16& x, const Bits16& weights, bool has_weights, float& squares) {
  Bits16 all;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = widened(T{static_cast<uint16_t>(x.of[i])}),
                high = widened(T{static_cast<uint16_t>(x.of[i] >> 16)});
    squares += low * low + high * high;
    const float by_low = widened(T{static_cast<uint16_t>(weights.of[i])}),
                by_high = widened(T{static_cast<uint16_t>(weights.of[i] >> 16)});
    all.of[i] = has_weights ? packed<T>(low * by_low, high * by_high) : x.of[i];
  }
  return all;
}

/// The rows of x into shared memory, normalized but for the scale: a warp takes every eighth 512 bytes.
template <class T, int kRows>
__device__ void load_x(const Item& item, const SkinnyNorm& norm, Shared<kRows>& shared, T* x) {
  constexpr int kAtOnce = 2;
  const int warp = static_cast<int>(threadIdx.x) / 32, pieces = item.k / kOf;
  const bool has_weights = item.normed && norm.weight;
  for (int row = 0; row < kRows; ++row) {
    const T* const from = static_cast<const T*>(item.x) + int64_t{row < item.rows ? row : 0} * item.k;
    float squares = 0;
    for (int begin = static_cast<int>(threadIdx.x); begin < pieces; begin += kThreads * kAtOnce) {
      Bits16 of_x[kAtOnce], weights[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int piece = begin + kThreads * i;
        const bool there = piece < pieces && row < item.rows;
        of_x[i] = there ? reinterpret_cast<const Bits16*>(from)[piece] : Bits16{};
        weights[i] = there && has_weights ? reinterpret_cast<const Bits16*>(norm.weight)[piece] : Bits16{};
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int piece = begin + kThreads * i;
        if (item.normed) of_x[i] = weighted<T>(of_x[i], weights[i], has_weights, squares);
        if (piece < pieces) reinterpret_cast<Bits16*>(x + int64_t{row} * item.k)[piece] = of_x[i];
      }
    }
    if (!item.normed) continue;
    squares = sum_of<32>(squares);
    if (threadIdx.x % 32 == 0) shared.squares[warp][row] = squares;
  }
}

/// A warp's part of a weight row, of each product.
template <class T, int kRows, int kProducts>
struct Part {
  static constexpr int kLoads = kPieces / kProducts, kChunk = 32 * kLoads * kOf;

  const Item& item;
  int row;            // of the weights
  int first, stride;  // of its chunks
  Bits16 weights[kProducts][kLoads];
  float sums[kProducts][4] = {};

  __device__ int place(int chunk, int i) const {
    return chunk * kChunk + (i * 32 + static_cast<int>(threadIdx.x) % 32) * kOf;
  }
  __device__ bool is_there(int chunk) const { return row < item.n && chunk * kChunk < item.k; }
  __device__ void load(int chunk) {
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      const T* const from = static_cast<const T*>(item.weights[p < item.products ? p : 0]) + int64_t{row} * item.k;
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        weights[p][i] = place(chunk, i) < item.k && p < item.products
                            ? load_streamed<Bits16>(from + place(chunk, i))
                            : Bits16{};
    }
  }
  /// Each lane's pieces of x are a row of one factor, and those of the weights a column of the other: the
  /// diagonal of the product is what is wanted.
  __device__ void multiply(int chunk, const T* x) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      Bits16 a[2] = {};
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (place(chunk, i) < item.k)
          a[r] = *reinterpret_cast<const Bits16*>(x + int64_t{r} * item.k + place(chunk, i));
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
        const Bits16& w = weights[p][i];
        multiply_add<T>(sums[p], {a[0].of[0], a[1].of[0], a[0].of[1], a[1].of[1]}, {w.of[0], w.of[1]});
        multiply_add<T>(sums[p], {a[0].of[2], a[1].of[2], a[0].of[3], a[1].of[3]}, {w.of[2], w.of[3]});
      }
    }
  }
  __device__ float sum(int product, int of_row) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4;
    const float own = g % 2 ? sums[product][2 * of_row + 1] : sums[product][2 * of_row];
    return sum_of<32>(lane % 4 == g / 2 ? own : 0);
  }
};

/// The factor that normalizes a row.
template <int kRows>
__device__ float scale_of(const Shared<kRows>& shared, int row, const SkinnyNorm& norm) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += shared.squares[w][row];
  return 1 / sqrtf(sum / static_cast<float>(norm.columns) + norm.epsilon);
}

/// This block's share of the normalized rows, for whoever reads them beside the products: by the warps that
/// have nothing else to do.
template <int kRows>
__device__ void write_norm(const Shared<kRows>& shared, const SkinnyNorm& norm) {
  const int64_t all = int64_t{norm.rows} * norm.columns, blocks = gridDim.x,
                share = (all + blocks - 1) / blocks, begin = static_cast<int64_t>(blockIdx.x) * share,
                end = begin + share < all ? begin + share : all;
  for (int64_t i = begin + threadIdx.x - 32; i < end; i += kThreads - 32) {
    const int row = static_cast<int>(i / norm.columns), column = static_cast<int>(i % norm.columns);
    norm.y[i] = narrowed<bf16>(widened(norm.x[i]) * scale_of(shared, row, norm) *
                               (norm.weight ? widened(norm.weight[column]) : 1));
  }
}

/// `parts` warps share a row of a weight.
template <class T, int kRows, int kProducts>
__global__ void __launch_bounds__(kThreads, 3) multiply_vectors(const __grid_constant__ Items items, int parts) {
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / 32,
            lane = static_cast<int>(threadIdx.x) % 32, rows = kWarps / parts;
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  auto& shared = *dynamic_shared<Shared<kRows>>();
  T* const x = reinterpret_cast<T*>(&shared + 1);
  const int first_row = (number - items.first_blocks[i]) * rows;
  Part<T, kRows, kProducts> part{item, first_row + warp / parts, warp % parts, parts};
  if (!items.early) wait_for_kernels_before();
  if (part.is_there(part.first)) part.load(part.first);
  // Arguments come from memory when they are first read: those that the last steps need, now.
  for (int w = static_cast<int>(threadIdx.x); w < static_cast<int>(sizeof(Item) / 4); w += kThreads)
    reinterpret_cast<uint32_t*>(&shared.item)[w] = reinterpret_cast<const uint32_t*>(&item)[w];
  wait_for_kernels_before();
  load_x<T, kRows>(item, items.norm, shared, x);
  const int of_x = static_cast<int>(threadIdx.x) / rows, own = static_cast<int>(threadIdx.x) % rows,
            column = first_row + own;
  const bool ends = of_x < item.rows && of_x < kRows && column < item.n;
  Operands operands;
  if (ends) operands = Operands(item, of_x, column);
  sync_block();
  for (int chunk = part.first; part.is_there(chunk); chunk += part.stride) {
    if (chunk > part.first) part.load(chunk);
    part.multiply(chunk, x);
  }
#pragma unroll
  for (int p = 0; p < kProducts; ++p)
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (const float sum = part.sum(p, r); lane == 0) shared.sums[p][warp][r] = sum;
  sync_block();
  if (items.has_norm && warp > 0) write_norm(shared, items.norm);
  if (!ends) return;
  const float scale = item.normed ? scale_of(shared, of_x, items.norm) : 1;
  float products[kMostProducts] = {};
#pragma unroll
  for (int p = 0; p < kProducts; ++p) {
    for (int w = 0; w < parts; ++w) products[p] += shared.sums[p][own * parts + w][of_x];
    products[p] *= scale;
  }
  run_steps(shared.item, products, operands, of_x, column);
}

/// Rows for which no product waits.
__global__ void __launch_bounds__(kThreads) inline normalize_rows(SkinnyNorm norm) {
  __shared__ float of_warps[kWarps];
  let_next_kernel_start();
  wait_for_kernels_before();
  const bf16* const x = norm.x + int64_t{blockIdx.x} * norm.columns;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < norm.columns; i += kThreads) {
    const float v = widened(x[i]);
    squares += v * v;
  }
  squares = sum_of<32>(squares);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  sync_block();
  squares = 0;
  for (const float w : of_warps) squares += w;
  const float scale = 1 / sqrtf(squares / static_cast<float>(norm.columns) + norm.epsilon);
  for (int i = static_cast<int>(threadIdx.x); i < norm.columns; i += kThreads)
    norm.y[int64_t{blockIdx.x} * norm.columns + i] =
        narrowed<bf16>(widened(x[i]) * scale * (norm.weight ? widened(norm.weight[i]) : 1));
}

}  // namespace weft::cuda::skinny::vectors

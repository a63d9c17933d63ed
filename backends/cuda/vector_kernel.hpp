#pragma once
#include "skinny_items.hpp"

// Products of one or two rows with weights of 16-bit elements. There are at most as many blocks as
// multiprocessors; each takes some of the weights' tiles, and each of its warps every eighth piece of a tile,
// through a ring in shared memory that stays full until the last tile. A block leaves room for those of the
// next two kernels, which fill their rings while they wait: so memory is read all the time, whatever kernels
// between the products need.
namespace weft::cuda::skinny::vectors {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTile = 8;                  // rows of a weight
constexpr int kLoads = 4;                 // pieces that a lane copies at a time
constexpr int kStages = 4;                // of the ring
constexpr int kOf = 8;                    // elements of a piece
constexpr int kBatch = 4 * kOf * kLoads;  // elements of each row that a warp copies at a time
constexpr int kMostXBytes = 48 << 10;

/// In shared memory; x follows.
template <int kRows>
struct Shared {
  Bits16 ring[kStages][kLoads][kThreads];
  float sums[2][kMostProducts][kWarps][kRows][kTile];  // of this tile and the one before
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

/// A warp's share of the tiles that its block multiplies: tile after tile, product after product, batch after
/// batch. Lanes hold pieces of weight row lane / 4.
template <class T, int kRows>
struct Warp {
  const Item& item;   // in the arguments
  int first, stride;  // of the tiles
  Shared<kRows>& shared;
  T* x;  // in shared memory: [kRows][k]
  int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
      t = lane % 4;
  int own = ((item.k + kBatch - 1) / kBatch - warp + kWarps - 1) / kWarps;  // batches of a tile's product
  int tile = first, product = 0, batch = 0;                                 // what is copied next

  __device__ int place(int of_batch) const { return (warp + of_batch * kWarps) * kBatch; }
  __device__ int tiles() const { return (item.n + kTile - 1) / kTile; }

  /// Begins to copy the next batch into a stage, if there is one.
  __device__ void copy(int stage) {
    if (tile < tiles() && own > 0) {
      const int row = tile * kTile + g < item.n ? tile * kTile + g : item.n - 1, k = place(batch) + t * kOf;
      const T* const from = static_cast<const T*>(item.weights[product]) + int64_t{row} * item.k + k;
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const bool there = k + i * 4 * kOf < item.k;
        copy_async(&shared.ring[stage][i][threadIdx.x], there ? from + i * 4 * kOf : from - k, there);
      }
      if (++batch == own) {
        batch = 0;
        if (++product == item.products) product = 0, tile += stride;
      }
    }
    end_of_copies();
  }
  /// This warp's columns of x, normalized but for the scale.
  __device__ void load_x(const SkinnyNorm& norm) {
    constexpr int kAtOnce = 4, kPieces = kBatch / kOf;
    const bool has_weights = item.normed && norm.weight;
    for (int row = 0; row < kRows; ++row) {
      const T* const from = static_cast<const T*>(item.x) + int64_t{row < item.rows ? row : 0} * item.k;
      float squares = 0;
      for (int begin = lane; begin < own * kPieces; begin += 32 * kAtOnce) {
        Bits16 pieces[kAtOnce], weights[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int piece = begin + 32 * i, k = place(piece / kPieces) + piece % kPieces * kOf;
          const bool there = piece < own * kPieces && k < item.k && row < item.rows;
          pieces[i] = there ? *reinterpret_cast<const Bits16*>(from + k) : Bits16{};
          weights[i] = there && has_weights ? *reinterpret_cast<const Bits16*>(norm.weight + k) : Bits16{};
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int piece = begin + 32 * i, k = place(piece / kPieces) + piece % kPieces * kOf;
          if (item.normed) pieces[i] = weighted<T>(pieces[i], weights[i], has_weights, squares);
          if (piece < own * kPieces && k < item.k)
            *reinterpret_cast<Bits16*>(x + int64_t{row} * item.k + k) = pieces[i];
        }
      }
      squares = sum_of<32>(squares);
      if (lane == 0) shared.squares[warp][row] = squares;
    }
    sync_warp();
  }
  /// Multiplies a batch with x.
  __device__ void multiply(int stage, int of_batch, float (&sums)[4]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const Bits16 w = shared.ring[stage][i][threadIdx.x];
      const int k = place(of_batch) + (4 * i + t) * kOf;
      Bits16 a{};
      if (g < kRows && k < item.k) a = *reinterpret_cast<const Bits16*>(x + int64_t{g} * item.k + k);
      // The order in which elements are multiplied is free, as long as both sides have the same.
      multiply_add<T>(sums, {a.of[0], 0, a.of[1], 0}, {w.of[0], w.of[1]});
      multiply_add<T>(sums, {a.of[2], 0, a.of[3], 0}, {w.of[2], w.of[3]});
    }
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

/// This block's share of the normalized rows, for whoever reads them beside the products.
template <int kRows>
__device__ void write_norm(const Shared<kRows>& shared, const SkinnyNorm& norm) {
  const int64_t all = int64_t{norm.rows} * norm.columns, blocks = gridDim.x,
                share = (all + blocks - 1) / blocks, begin = static_cast<int64_t>(blockIdx.x) * share,
                end = begin + share < all ? begin + share : all;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const int row = static_cast<int>(i / norm.columns), column = static_cast<int>(i % norm.columns);
    norm.y[i] = narrowed<bf16>(widened(norm.x[i]) * scale_of(shared, row, norm) *
                               (norm.weight ? widened(norm.weight[column]) : 1));
  }
}

template <class T, int kRows>
__global__ void __launch_bounds__(kThreads, 3) multiply_vectors(const __grid_constant__ Items items) {
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x);
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  auto& shared = *dynamic_shared<Shared<kRows>>();
  Warp<T, kRows> warp{item, number - items.first_blocks[i], items.first_blocks[i + 1] - items.first_blocks[i],
                      shared, reinterpret_cast<T*>(&shared + 1)};
  if (!items.early) wait_for_kernels_before();
  for (int stage = 0; stage < kStages; ++stage) warp.copy(stage);
  // Arguments come from memory when they are first read: those that the last steps need, now.
  constexpr int kWords = sizeof(Item) / 4;
  for (int w = static_cast<int>(threadIdx.x); w < kWords; w += kThreads)
    reinterpret_cast<uint32_t*>(&shared.item)[w] = reinterpret_cast<const uint32_t*>(&item)[w];
  wait_for_kernels_before();
  warp.load_x(items.norm);
  const int tiles = warp.tiles(), row = warp.lane / kTile, column = warp.lane % kTile;
  int at = 0, parity = 0;
  for (int tile = warp.first; tile < tiles; tile += warp.stride, parity ^= 1) {
    // One warp after the other does the steps of a tile.
    const bool ends = tile / warp.stride % kWarps == warp.warp && row < item.rows && row < kRows &&
                      tile * kTile + column < item.n;
    Operands operands;
    if (ends) operands = Operands(item, row, tile * kTile + column);
    for (int p = 0; p < item.products; ++p) {
      float sums[4] = {};
      for (int batch = 0; batch < warp.own; ++batch, ++at) {
        wait_for_copies<kStages - 1>();
        warp.multiply(at % kStages, batch, sums);
        warp.copy(at % kStages);
      }
      if (warp.g < kRows) {
        float* const to = &shared.sums[parity][p][warp.warp][warp.g][2 * warp.t];
        to[0] = sums[0], to[1] = sums[1];
      }
    }
    sync_block();
    if (tile == warp.first && items.has_norm) write_norm(shared, items.norm);
    if (!ends) continue;
    const float scale = item.normed ? scale_of(shared, row, items.norm) : 1;
    float products[kMostProducts] = {};
#pragma unroll
    for (int p = 0; p < kMostProducts; ++p)
      if (p < item.products) {
#pragma unroll
        for (int w = 0; w < kWarps; ++w) products[p] += shared.sums[parity][p][w][row][column];
        products[p] *= scale;
      }
    run_steps(shared.item, products, operands, row, tile * kTile + column);
  }
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

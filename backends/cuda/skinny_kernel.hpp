#pragma once
#include <algorithm>

#include "skinny_steps.hpp"
#include "words.hpp"

// Products of at most 16 rows with weights. A block takes tiles of 16 or 32 rows of a weight, and each of its
// warps every eighth piece of them; it goes on loading while the sums of a tile are joined and written. The
// rows of x are the columns of a tensor core's product. Weights and x pass through shared memory, where each
// lane reads what it has copied itself, so that many copies are under way whatever the registers hold. Those
// of constant weights begin before the kernel waits for the ones before it.
namespace weft::cuda::skinny {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kBlocks = 2;     // that run at a time on a multiprocessor
constexpr int kLoads = 2;      // pieces that a lane copies at a time, of each of its rows
constexpr int kMostItems = 8;  // of a launch: a kernel's arguments take at most 4 KB

struct Items {
  Item all[kMostItems];
  int first_blocks[kMostItems + 1];
  int n;
  bool early;    // no kernel that may still run writes the weights
  bool ordered;  // sums must not depend on what else is launched with them
  bool has_norm;
  SkinnyNorm norm;
};
static_assert(sizeof(Items) <= 4000);

/// Each item gets a part of the blocks, by the bytes of its weights, and one at least.
inline void share_blocks(Items& items, int blocks) {
  const auto bytes = [](const Item& i) { return int64_t{i.n} * i.k * i.products; };
  int64_t all = 0;
  for (int i = 0; i < items.n; ++i) all += bytes(items.all[i]);
  items.first_blocks[0] = 0;
  for (int i = 0; i < items.n; ++i) {
    const int64_t own = bytes(items.all[i]), part = (blocks * own + all / 2) / all;
    const int64_t others = items.n - 1 - i, most = std::max<int64_t>(blocks - others, 1);
    const int n = static_cast<int>(std::clamp<int64_t>(part, 1, most));
    items.first_blocks[i + 1] = items.first_blocks[i] + n;
    blocks -= n, all -= own;
  }
}

/// The 16 bytes of `row` from element k on; zeros behind its end.
template <class T>
__device__ Words piece_of(const T* row, int k, int end, bool aligned) {
  constexpr int kOf = 16 / sizeof(T);
  Words bits{};
  if (k >= end) return bits;
  if (aligned) return *reinterpret_cast<const Words*>(row + k);
  T all[kOf];
  for (int i = 0; i < kOf; ++i) all[i] = k + i < end ? row[k + i] : narrowed<T>(0);
  memcpy(&bits, all, sizeof bits);
  return bits;
}

/// A batch, as lanes copy it into shared memory, each beside the others: pieces of the rows g and g + 8 of
/// each tile of a weight, and of row g of each tile of x; g = lane / 4.
template <int kRowTiles, int kRows>
struct Batch {
  static constexpr int kTiles = (kRows + 7) / 8, kLanes = kRows < 8 ? 4 * kRows : 32;

  Words weights[kLoads][2 * kRowTiles][kThreads];
  Words rows[kLoads][kTiles][kWarps * kLanes];
  Words norms[kRows == kNormedRows ? kLoads : 1]
             [kWarps * kLanes];  // weights of the norm, as each lane needs them

  /// Whether this lane has rows of x.
  __device__ static bool has_rows() { return static_cast<int>(threadIdx.x) % 32 < kLanes; }
  __device__ Words& own_rows(int i, int tile) { return rows[i][tile][place()]; }
  __device__ Words& own_norm(int i) { return norms[i][place()]; }

 private:
  __device__ static int place() {
    return static_cast<int>(threadIdx.x) / 32 * kLanes + static_cast<int>(threadIdx.x) % 32;
  }
};

/// x times the weights of a norm; adds the squares of x.
template <class T>
__device__ Words weighted(const Words& x, const Words& weights, bool has_weights, float& squares) {
  Words all;
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

/// Sums of products: of weight rows g and g + 8 with rows 2t and 2t + 1 of each tile of x, t = lane % 4.
template <class T, int kRowTiles, int kRows>
struct Sums {
  static constexpr int kTiles = Batch<kRowTiles, kRows>::kTiles;
  float of[kRowTiles][kTiles][4] = {};
  float squares = 0;  // of this lane's elements of x, where it is normed

  __device__ void add(Batch<kRowTiles, kRows>& batch, bool normed, bool weights) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      Words rows[kTiles] = {};
      if (batch.has_rows())
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          rows[tile] = batch.own_rows(i, tile);
          if constexpr (kRows == kNormedRows)
            if (normed) rows[tile] = weighted<T>(rows[tile], batch.own_norm(i), weights, squares);
        }
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const Words top = batch.weights[i][2 * r][threadIdx.x],
                    bottom = batch.weights[i][2 * r + 1][threadIdx.x];
        // The order in which elements are multiplied is free, as long as both sides have the same.
        const uint32_t first[4] = {top.of[0], bottom.of[0], top.of[1], bottom.of[1]},
                       second[4] = {top.of[2], bottom.of[2], top.of[3], bottom.of[3]};
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const Words& b = rows[tile];
          multiply_add<T>(of[r][tile], first, {b.of[0], b.of[1]});
          multiply_add<T>(of[r][tile], second, {b.of[2], b.of[3]});
        }
      }
    }
  }
  __device__ void end() {}
};
/// Without tensor cores: each lane multiplies its pieces with all rows of x, which it gets from the lanes
/// that copied them.
template <int kRowTiles, int kRows>
struct Sums<float, kRowTiles, kRows> {
  static constexpr int kTiles = Batch<kRowTiles, kRows>::kTiles;
  float all[kRowTiles][kTiles * 8][2] =
      {};  // by row of x: sums of this lane's pieces of weight rows g and g + 8
  float of[kRowTiles][kTiles][4];
  float squares = 0;

  __device__ void add(Batch<kRowTiles, kRows>& batch, bool, bool) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const Words own = batch.has_rows() ? batch.own_rows(i, row / 8) : Words{};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float x = shuffle(as_float(own.of[e]), row % 8 * 4 + static_cast<int>(threadIdx.x) % 4);
#pragma unroll
          for (int r = 0; r < 2 * kRowTiles; ++r)
            all[r / 2][row][r % 2] += as_float(batch.weights[i][r][threadIdx.x].of[e]) * x;
        }
      }
  }
  __device__ void end() {
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float sum = sum_of<4>(all[r][row][half]);
          if (row % 8 / 2 == t) of[r][row / 8][2 * half + row % 2] = sum;
        }
  }
};

template <class T, int kRowTiles, int kRows, int kStages>
struct SkinnyBlock {
  static constexpr int kTiles = Batch<kRowTiles, kRows>::kTiles;
  static constexpr int kOf = 16 / sizeof(T);       // elements of a piece
  static constexpr int kBatch = 4 * kOf * kLoads;  // elements of each row that a warp copies at a time

  const Item& item;
  int first_row, stride, tiles;     // of the weights: this block's tiles of 16 kRowTiles rows
  Batch<kRowTiles, kRows>* stages;  // kStages of them
  const T* norm_weight;             // null: x is not normed, or has no weights
  int warp = static_cast<int>(threadIdx.x) / 32, g = static_cast<int>(threadIdx.x) % 32 / 4,
      t = static_cast<int>(threadIdx.x) % 4;
  int own = ((item.k + kBatch - 1) / kBatch - warp + kWarps - 1) / kWarps;  // batches of each product
  int all = own * item.products;                                            // of a tile

  /// This lane's piece of a row; zeros if the row is not `there`.
  __device__ void copy_piece(Words* to, const T* row, int batch, int i, bool there) const {
    const int k = (warp + batch * kWarps) * kBatch + (4 * i + t) * kOf;
    there = there && k < item.k;
    if (item.aligned)
      copy_async(to, there ? row + k : row, there);
    else
      *to = piece_of(row, k, there ? item.k : 0, false);
  }
  /// Begins to copy the weights of batch number `at` of all tiles, if it is there.
  __device__ void copy_weights(int at) const {
    if (at >= tiles * all) return;
    const int tile = at / all, of_tile = at - tile * all, product = of_tile >= own ? 1 : 0,
              batch = of_tile - product * own;
    const T* weight = static_cast<const T*>(item.weights[product]);
#pragma unroll
    for (int r = 0; r < 2 * kRowTiles; ++r) {
      const int row = first_row + tile * stride + g + 8 * r;
      const T* from = weight + int64_t{row < item.n ? row : item.n - 1} * item.k;
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        copy_piece(&stages[at % kStages].weights[i][r][threadIdx.x], from, batch, i, true);
    }
  }
  __device__ void copy_rows(int at) const {
    if (at >= tiles * all || !stages->has_rows()) return;
    const int batch = at % own;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const int row = g + 8 * tile;
      const T* from = static_cast<const T*>(item.x) + (row < item.rows ? int64_t{row} * item.k : 0);
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        copy_piece(&stages[at % kStages].own_rows(i, tile), from, batch, i, row < item.rows);
    }
    if constexpr (kRows == kNormedRows)
      if (norm_weight)
#pragma unroll
        for (int i = 0; i < kLoads; ++i)
          copy_piece(&stages[at % kStages].own_norm(i), norm_weight, batch, i, true);
  }
  __device__ Sums<T, kRowTiles, kRows> product(int tile, int number) const {
    Sums<T, kRowTiles, kRows> sums;
    const int begin = tile * all + number * own;
    for (int at = begin; at < begin + own; ++at) {
      copy_weights(at + kStages - 1);
      copy_rows(at + kStages - 1);
      end_of_copies();
      wait_for_copies<kStages - 1>();
      sums.add(stages[at % kStages], item.normed, norm_weight != nullptr);
    }
    sums.end();
    return sums;
  }
};

/// A block normalizes the rows for whoever reads them beside these products.
__device__ inline void normalize_rows(const SkinnyNorm& norm) {
  __shared__ float of_warps[kWarps];
  for (int row = 0; row < norm.rows; ++row) {
    const bf16* const x = norm.x + int64_t{row} * norm.columns;
    float squares = 0;
    for (int i = static_cast<int>(threadIdx.x); i < norm.columns; i += kThreads) {
      const float v = widened(x[i]);
      squares += v * v;
    }
    squares = sum_of<32>(squares);
    sync_block();
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
    sync_block();
    squares = 0;
    for (const float w : of_warps) squares += w;
    const float scale = 1 / sqrtf(squares / static_cast<float>(norm.columns) + norm.epsilon);
    for (int i = static_cast<int>(threadIdx.x); i < norm.columns; i += kThreads)
      norm.y[int64_t{row} * norm.columns + i] =
          narrowed<bf16>(widened(x[i]) * scale * (norm.weight ? widened(norm.weight[i]) : 1));
  }
}

/// The sums that the warps of a block have of a tile, in shared memory.
template <int kRowTiles, int kTiles>
struct SumsOfTile {
  static constexpr int kBlockRows = 16 * kRowTiles;
  float of[kMostProducts][kWarps][kTiles * 8][kBlockRows + 1];
  float squares[kWarps][kNormedRows];

  template <class Block, class Sums>
  __device__ void put(const Block& block, const Sums& sums, int product) {
    if (block.item.normed && product == 0) {
      const float of_row = sum_of<4>(sums.squares);
      if (block.t == 0 && block.g < kNormedRows) squares[block.warp][block.g] = of_row;
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          of[product][block.warp][8 * tile + 2 * block.t + c % 2][16 * r + block.g + c / 2 * 8] =
              sums.of[r][tile][c];
  }
  /// After a sync: joins them, and runs the steps of the elements.
  __device__ void run(const Item& item, float epsilon, int first_row) const {
    constexpr int kEach = (8 * kTiles * kBlockRows + kThreads - 1) / kThreads;
    StepElement all[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int at = static_cast<int>(threadIdx.x) + e * kThreads, row = at / kBlockRows,
                column = at % kBlockRows;
      all[e] = {row < item.rows && first_row + column < item.n, row, first_row + column, {}};
      if (all[e].there) join(item, epsilon, row, column, all[e].products);
    }
    float values[kMostSteps][kEach];
    run_steps(item, all, [&](int step, int e) -> float& { return values[step][e]; });
  }

 private:
  __device__ void join(const Item& item, float epsilon, int row, int column,
                       float (&products)[kMostProducts]) const {
    for (int p = 0; p < item.products; ++p)
#pragma unroll
      for (int w = 0; w < kWarps; ++w) products[p] += of[p][w][row][column];
    if (!item.normed) return;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += squares[w][row];
    const float scale = 1 / sqrtf(sum / static_cast<float>(item.k) + epsilon);
    for (float& product : products) product *= scale;
  }
};

template <class T, int kRowTiles, int kRows, int kStages>
__global__ void __launch_bounds__(kThreads, kBlocks) multiply_skinny(Items items) {
  constexpr int kBlockRows = 16 * kRowTiles;
  __shared__ SumsOfTile<kRowTiles, Batch<kRowTiles, kRows>::kTiles> sums;
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x);
  if (number == items.first_blocks[items.n]) {
    wait_for_kernels_before();
    return normalize_rows(items.norm);
  }
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  const int first = number - items.first_blocks[i],
            blocks = items.first_blocks[i + 1] - items.first_blocks[i],
            all = (item.n + kBlockRows - 1) / kBlockRows, tiles = (all - first + blocks - 1) / blocks;
  const SkinnyBlock<T, kRowTiles, kRows, kStages> block{
      item,
      first * kBlockRows,
      blocks * kBlockRows,
      tiles,
      dynamic_shared<Batch<kRowTiles, kRows>>(),
      item.normed ? reinterpret_cast<const T*>(items.norm.weight) : nullptr};
  if (!items.early) wait_for_kernels_before();
  for (int stage = 0; stage < kStages - 1; ++stage) block.copy_weights(stage);
  wait_for_kernels_before();
  for (int stage = 0; stage < kStages - 1; ++stage) {
    block.copy_rows(stage);
    end_of_copies();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    for (int p = 0; p < item.products; ++p) sums.put(block, block.product(tile, p), p);
    sync_block();
    sums.run(item, items.norm.epsilon, block.first_row + tile * block.stride);
    if (tile + 1 < tiles) sync_block();  // the next tile's sums take their place
  }
}

}  // namespace weft::cuda::skinny

#pragma once
#include "matmul_kernel.hpp"
#include "tensor_map.hpp"

// From a product of row-major matrices to a launch of matmul_tiles.
namespace weft::cuda::hopper {

/// c [batch, m, n] = a b + bias [n], and what `ending` names. a is [m, k], or [k, m] if transposed; b is
/// [k, n], or [n, k] if transposed.
struct MatmulCall {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  bool one_a = false, one_b = false;  ///< one matrix for the whole batch
  Ending ending = Ending::plain;
  DType dtype = DType::bf16;
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void* other = nullptr;  ///< an operand or the second result, by `ending`
  void* c = nullptr;
  int shares = 1;         ///< of k that are added up in f32
  float* sums = nullptr;  ///< [shares, batch, m, n], aligned to 16 bytes, if there are more of them than one
  int* counters = nullptr;        ///< two of 0, of no kernel that may run at the same time
  cudaStream_t stream = nullptr;  ///< of the launch
  int64_t elements() const { return batch * m * n; }
  /// Whether the kernel that multiplies reads `other`, and writes c where that lies.
  bool updates() const { return shares == 1 && (ending == Ending::sum || ending == Ending::gelu_slope); }
};

/// How to divide a product, by its sizes alone, so that results depend on nothing else.
struct Division {
  int shares = 1;
  double microseconds = 0;  ///< a rough estimate on an H200, to choose by
};

inline int64_t divided_up(int64_t size, int64_t by) { return (size + by - 1) / by; }

/// Of k: rows of a slice have 128 bytes.
inline int slice_size(DType t) { return static_cast<int>(kSwizzledRow / byte_size(t)); }

/// Matrices [batch, rows, columns], and tiles of so many rows that are 128 bytes wide.
inline TensorLayout<3> layout_of(DType dtype, int64_t rows, int64_t columns, int64_t batch, int tile_rows) {
  return {{columns, rows, batch}, {columns, rows * columns}, {slice_size(dtype), tile_rows, 1}};
}

template <class Tiles>
backend::Outcome make_maps(const MatmulCall& call, MatmulMaps* maps) {
  const auto map = [&](CUtensorMap* to, const void* at, bool along_k, int64_t size, bool one, int tile) {
    return make_tensor_map(to, call.dtype, at,
                           layout_of(call.dtype, along_k ? size : call.k, along_k ? call.k : size,
                                     one ? 1 : call.batch, along_k ? tile : kSlice));
  };
  if (auto made = map(&maps->a, call.a, !call.transpose_a, call.m, call.one_a, kTileRows); !made.good())
    return made;
  return map(&maps->b, call.b, call.transpose_b, call.n, call.one_b, Tiles::kColumns);
}

/// Maps of the results, which are of `dtype`, if the TMA unit stores them.
inline backend::Outcome make_store_maps(const MatmulCall& call, DType dtype, MatmulMaps* maps) {
  if (call.shares > 1 || call.updates()) return backend::Outcome::ok();
  const TensorLayout<3> layout = layout_of(dtype, call.m, call.n, call.batch, kPart);
  auto made = make_store_map(&maps->c, call.stream, dtype, call.c, layout);
  if (!made.good() || call.ending != Ending::gelu) return made;
  return make_store_map(&maps->other, call.stream, dtype, call.other, layout);
}

template <class Tiles>
int64_t tiles_of(const MatmulCall& call) {
  return divided_up(call.m, kTileRows) * divided_up(call.n, Tiles::kColumns) * call.batch;
}

/// What tiles take on an H200, in microseconds.
struct TileTimes {
  double slice, tile;  ///< each slice of k, and each tile beside its slices
  int least_slices;    ///< of a share
};

/// The best number of shares for so many tiles and elements of c. Sums of shares are written and read again
/// at 3 TB/s, by a kernel of 4 us.
inline Division best_shares(int64_t tiles, int64_t slices, int64_t elements, int most_shares,
                            const TileTimes& times) {
  constexpr int kBlocks = 132;
  Division best;
  for (int shares = 1; shares <= most_shares; ++shares) {
    const int64_t each = divided_up(slices, shares);
    if (shares > 1 && (each < times.least_slices || divided_up(slices, each) != shares)) continue;
    const auto rounds = static_cast<double>(divided_up(tiles * shares, kBlocks));
    double time = rounds * (static_cast<double>(each) * times.slice + times.tile);
    if (shares > 1) time += 4 + static_cast<double>(elements) * shares * 2 * sizeof(float) / 3e6;
    if (shares == 1 || time < best.microseconds) best = {shares, time};
  }
  return best;
}

/// The best number of shares; of two results there are none. A slice takes 0.415 us in tiles of 128 columns
/// and 0.605 us in those of 192, a tile half a slice more than its slices. A consumer takes 9 or 16.8 us to
/// multiply a tile by slopes of gelu; where that is longer than its slices, two consumers take half of both.
template <class Tiles>
Division division_of(const MatmulCall& call, int most_shares) {
  constexpr double kSliceTime = 0.035 + 0.38 * Tiles::kColumns / 128,
                   kSlopeTime = Tiles::kColumns > 128 ? 16.8 : 9;
  const int64_t slices = divided_up(call.k, kSlice);
  double tile = kSliceTime / 2;
  if (call.ending == Ending::gelu_slope)
    tile = std::max(tile, (kSlopeTime - static_cast<double>(slices) * kSliceTime) / 2);
  if (call.ending == Ending::gelu || call.ending == Ending::gelu_slope) most_shares = 1;
  return best_shares(tiles_of<Tiles>(call), slices, call.elements(), most_shares,
                     {.slice = kSliceTime, .tile = tile, .least_slices = 8});
}

template <class Tiles>
MatmulTask task_of(const MatmulCall& call) {
  const auto pieces = [](int64_t size, int piece) { return static_cast<int>(divided_up(size, piece)); };
  MatmulTask task;
  task.rows = static_cast<int>(call.m), task.columns = static_cast<int>(call.n);
  task.slices = pieces(call.k, slice_size(call.dtype));
  task.row_tiles = pieces(call.m, kTileRows), task.column_tiles = pieces(call.n, Tiles::kColumns);
  task.batch = static_cast<int>(call.batch);
  task.a_step = !call.one_a, task.b_step = !call.one_b;
  task.shares = call.shares, task.share_slices = pieces(task.slices, call.shares);
  task.counters = call.counters;
  if (call.shares > 1)
    task.sums = call.sums;
  else
    task.bias = call.bias, task.ending = call.ending, task.c = call.c, task.other = call.other;
  return task;
}

/// The kernel for what becomes of the results.
template <class T, class Tiles, Lies of_a, Lies of_b>
auto kernel_of(const MatmulCall& call) {
  if (call.shares > 1) return matmul_tiles<T, Tiles, TileSums<Tiles>, of_a, of_b>;
  if (!call.updates()) return matmul_tiles<T, Tiles, TileStore<T, Tiles>, of_a, of_b>;
  return call.ending == Ending::sum
             ? matmul_tiles<T, Tiles, TileUpdate<T, Tiles, Ending::sum>, of_a, of_b>
             : matmul_tiles<T, Tiles, TileUpdate<T, Tiles, Ending::gelu_slope>, of_a, of_b>;
}

/// `start(blocks, threads, shared bytes, kernel, arguments...)` launches; returns what it does.
template <class T, class Tiles, Lies of_a, Lies of_b, class Start>
backend::Outcome run_matmul(const MatmulCall& call, int multiprocessors, Start&& start) {
  MatmulMaps maps{};
  if (auto made = make_maps<Tiles>(call, &maps); !made.good()) return made;
  if (auto made = make_store_maps(call, call.dtype, &maps); !made.good()) return made;
  const int64_t blocks = std::min<int64_t>(tiles_of<Tiles>(call) * call.shares, multiprocessors);
  auto started = start(static_cast<unsigned>(blocks), kMatmulThreads, shared_bytes<Tiles>(),
                       kernel_of<T, Tiles, of_a, of_b>(call), maps, task_of<Tiles>(call));
  if (!started.good() || call.shares == 1) return started;
  const SharesSum sum{.sums = call.sums,
                      .c = call.c,
                      .bias = call.bias,
                      .other = call.ending == Ending::sum ? call.other : nullptr,
                      .elements = call.elements(),
                      .columns = static_cast<int>(call.n),
                      .shares = call.shares};
  return start(static_cast<unsigned>(divided_up(call.elements(), 4 * 256)), 256u, 0u, add_shares<T>, sum);
}

/// The same for the layouts that the call says.
template <class T, class Tiles, class Start>
backend::Outcome run_matmul_of(const MatmulCall& call, int multiprocessors, Start&& start) {
  constexpr Lies k = Lies::along_k, m = Lies::along_m;
  if (call.transpose_a)
    return call.transpose_b ? run_matmul<T, Tiles, m, k>(call, multiprocessors, start)
                            : run_matmul<T, Tiles, m, m>(call, multiprocessors, start);
  return call.transpose_b ? run_matmul<T, Tiles, k, k>(call, multiprocessors, start)
                          : run_matmul<T, Tiles, k, m>(call, multiprocessors, start);
}

/// The ways to tile: f(way) of each.
inline constexpr int kWays = 2, kMostShares = 16;
template <class F>
auto with_tiles(int way, F f) {
  return way == 0 ? f(static_cast<Tiling<192, 4, 3>*>(nullptr)) : f(static_cast<Tiling<128, 6, 2>*>(nullptr));
}

/// The way that takes least time, and its shares.
inline Division best_division(const MatmulCall& call, int most_shares, int* way) {
  Division best;
  for (int i = 0; i < kWays; ++i) {
    const Division found =
        with_tiles(i, [&]<class Tiles>(Tiles*) { return division_of<Tiles>(call, most_shares); });
    if (i == 0 || found.microseconds < best.microseconds) best = found, *way = i;
  }
  return best;
}

}  // namespace weft::cuda::hopper

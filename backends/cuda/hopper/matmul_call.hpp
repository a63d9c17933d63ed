#pragma once
#include "matmul_kernel.hpp"
#include "tensor_map.hpp"

// From a product of row-major matrices to a launch of matmul_tiles.
namespace weft::cuda::hopper {

/// c [batch, m, n] = a b, + bias [n], or += a b. a is [m, k], or [k, m] if transposed; b is [k, n], or
/// [n, k] if transposed.
struct MatmulCall {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  bool one_a = false, one_b = false;  ///< one matrix for the whole batch
  bool accumulate = false;
  DType dtype = DType::bf16;
  const void *a = nullptr, *b = nullptr, *bias = nullptr;
  void* c = nullptr;
  int shares = 1;         ///< of k that are added up in f32 and in `sums`, aligned to 16 bytes
  float* sums = nullptr;  ///< [shares, batch, m, n], if there are more of them than one
  int64_t elements() const { return batch * m * n; }
};

/// How to divide a product, by its sizes alone, so that results depend on nothing else.
struct Division {
  int shares = 1;
  double microseconds = 0;  ///< a rough estimate on an H200, to choose by
};

struct MatmulMaps {
  CUtensorMap a, b, c;
};

/// A map of matrices [batch, rows, columns], and tiles of so many rows that are 64 elements wide.
inline backend::Outcome make_matrix_map(CUtensorMap* map, DType dtype, const void* at, int64_t rows,
                                        int64_t columns, int64_t batch, int tile_rows) {
  return make_tensor_map(
      map, dtype, at,
      TensorLayout<3>{{columns, rows, batch}, {columns, rows * columns}, {kSlice, tile_rows, 1}});
}

template <class Tiles>
backend::Outcome make_maps(const MatmulCall& call, MatmulMaps* maps) {
  const auto map = [&](CUtensorMap* to, const void* at, bool along_k, int64_t size, bool one, int tile_rows) {
    return make_matrix_map(to, call.dtype, at, along_k ? size : call.k, along_k ? call.k : size,
                           one ? 1 : call.batch, tile_rows);
  };
  if (auto made = map(&maps->a, call.a, !call.transpose_a, call.m, call.one_a,
                      call.transpose_a ? kSlice : Tiles::kRows);
      !made.good())
    return made;
  if (auto made = map(&maps->b, call.b, call.transpose_b, call.n, call.one_b,
                      (call.transpose_b ? Tiles::kColumns : kSlice) / Tiles::kCluster);
      !made.good())
    return made;
  return make_matrix_map(&maps->c, call.dtype, call.c, call.m, call.n, call.batch, kPart);
}

inline int64_t divided_up(int64_t size, int64_t by) { return (size + by - 1) / by; }

/// Rows of tiles of a cluster times columns of tiles.
template <class Tiles>
int64_t units_of(const MatmulCall& call) {
  return divided_up(divided_up(call.m, Tiles::kRows), Tiles::kCluster) * divided_up(call.n, Tiles::kColumns) *
         call.batch;
}

/// The best number of shares. A tile takes as long as its slices and about 3 more to begin and to store it;
/// shares are written and read again as f32.
template <class Tiles>
Division division_of(const MatmulCall& call, int most_shares) {
  constexpr double kSliceMicroseconds = Tiles::kRows * Tiles::kColumns / (128.0 * 256) * 0.75;
  constexpr int kBlocks = 132, kLeastSlices = 8;
  const int64_t units = units_of<Tiles>(call), slices = divided_up(call.k, kSlice);
  Division best;
  for (int shares = 1; shares <= most_shares; ++shares) {
    const int64_t each = divided_up(slices, shares);
    if (shares > 1 && (each < kLeastSlices || divided_up(slices, each) != shares)) continue;
    const int64_t rounds = divided_up(units * shares, kBlocks / Tiles::kCluster);
    double time = static_cast<double>(rounds) * static_cast<double>(each + 3) * kSliceMicroseconds;
    if (shares > 1) time += 4 + static_cast<double>(call.elements()) * shares * 8 / 3e6;
    if (shares == 1 || time < best.microseconds) best = {shares, time};
  }
  return best;
}

template <class Tiles>
MatmulTask task_of(const MatmulCall& call, int group) {
  const auto tiles = [](int64_t size, int tile) { return static_cast<int>(divided_up(size, tile)); };
  MatmulTask task;
  task.rows = static_cast<int>(call.m), task.columns = static_cast<int>(call.n);
  task.slices = tiles(call.k, kSlice);
  task.row_tiles = tiles(call.m, Tiles::kRows), task.column_tiles = tiles(call.n, Tiles::kColumns);
  task.batch = static_cast<int>(call.batch);
  task.a_step = !call.one_a, task.b_step = !call.one_b;
  task.group = group;
  task.shares = call.shares, task.share_slices = tiles(task.slices, call.shares);
  if (call.shares > 1)
    task.sums = call.sums;
  else
    task.bias = call.bias, task.old = call.accumulate ? call.c : nullptr;
  return task;
}

/// `start(blocks, threads, shared bytes, kernel, arguments...)` launches; returns what it does.
template <class T, class Tiles, Lies of_a, Lies of_b, class Start>
backend::Outcome run_matmul(const MatmulCall& call, int multiprocessors, int group, Start&& start) {
  MatmulMaps maps;
  if (auto made = make_maps<Tiles>(call, &maps); !made.good()) return made;
  const int64_t clusters =
      std::min<int64_t>(units_of<Tiles>(call) * call.shares, multiprocessors / Tiles::kCluster);
  auto started =
      start(static_cast<unsigned>(clusters * Tiles::kCluster), kMatmulThreads, shared_bytes<Tiles>(),
            matmul_tiles<T, Tiles, of_a, of_b>, maps.a, maps.b, maps.c, task_of<Tiles>(call, group));
  if (!started.good() || call.shares == 1) return started;
  return start(static_cast<unsigned>(divided_up(call.elements(), 4 * 256)), 256u, 0u, add_shares<T>,
               static_cast<const float*>(call.sums), static_cast<T*>(call.c),
               static_cast<const T*>(call.bias), call.elements(), static_cast<int>(call.n), call.shares,
               call.accumulate);
}

/// The same for the layouts that the call says.
template <class T, class Tiles, class Start>
backend::Outcome run_matmul_of(const MatmulCall& call, int multiprocessors, int group, Start&& start) {
  constexpr Lies k = Lies::along_k, m = Lies::along_m;
  if (call.transpose_a)
    return call.transpose_b ? run_matmul<T, Tiles, m, k>(call, multiprocessors, group, start)
                            : run_matmul<T, Tiles, m, m>(call, multiprocessors, group, start);
  return call.transpose_b ? run_matmul<T, Tiles, k, k>(call, multiprocessors, group, start)
                          : run_matmul<T, Tiles, k, m>(call, multiprocessors, group, start);
}

}  // namespace weft::cuda::hopper

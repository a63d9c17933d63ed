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
  const auto map = [&](CUtensorMap* to, const void* at, bool along_k, int64_t size, bool one, int tile) {
    return make_matrix_map(to, call.dtype, at, along_k ? size : call.k, along_k ? call.k : size,
                           one ? 1 : call.batch, along_k ? tile : kSlice);
  };
  if (auto made = map(&maps->a, call.a, !call.transpose_a, call.m, call.one_a, Tiles::kRows); !made.good())
    return made;
  if (auto made =
          map(&maps->b, call.b, call.transpose_b, call.n, call.one_b, Tiles::kColumns / Tiles::kCluster);
      !made.good())
    return made;
  return make_matrix_map(&maps->c, call.dtype, call.c, call.m, call.n, call.batch, kPart);
}

template <class Tiles>
MatmulTask task_of(const MatmulCall& call, int group) {
  const auto tiles = [](int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); };
  MatmulTask task;
  task.rows = static_cast<int>(call.m), task.columns = static_cast<int>(call.n);
  task.slices = tiles(call.k, kSlice);
  task.row_tiles = tiles(call.m, Tiles::kRows), task.column_tiles = tiles(call.n, Tiles::kColumns);
  task.batch = static_cast<int>(call.batch);
  task.a_step = !call.one_a, task.b_step = !call.one_b;
  task.group = group;
  task.bias = call.bias, task.old = call.accumulate ? call.c : nullptr;
  return task;
}

/// `start(blocks, shared bytes, kernel, maps and task)` launches; returns what it does.
template <class T, class Tiles, Lies of_a, Lies of_b, class Start>
backend::Outcome run_matmul(const MatmulCall& call, int multiprocessors, int group, Start&& start) {
  MatmulMaps maps;
  if (auto made = make_maps<Tiles>(call, &maps); !made.good()) return made;
  const MatmulTask task = task_of<Tiles>(call, group);
  const int64_t units =
      int64_t{(task.row_tiles + Tiles::kCluster - 1) / Tiles::kCluster} * task.column_tiles * task.batch;
  const auto clusters = static_cast<unsigned>(std::min<int64_t>(units, multiprocessors / Tiles::kCluster));
  return start(clusters * Tiles::kCluster, shared_bytes<Tiles>(), matmul_tiles<T, Tiles, of_a, of_b>, maps.a,
               maps.b, maps.c, task);
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

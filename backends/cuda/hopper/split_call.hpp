#pragma once
#include "matmul_call.hpp"
#include "split_kernel.hpp"
#include "split_planes.hpp"
#include "tensor_map.hpp"

// From a product of f32 matrices to launches of split_planes and split_tiles.
namespace weft::cuda::hopper {

/// c [batch, m, n] = a b + bias [n] + onto. a is [m, k], or [k, m] if transposed; b is [k, n], or [n, k].
struct SplitCall {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  bool one_a = false, one_b = false;  ///< one matrix for the whole batch
  const float *a = nullptr, *b = nullptr, *bias = nullptr;
  const float* onto = nullptr;  ///< null, or what is added to the product; it may be c
  float* c = nullptr;
  int shares = 1;              ///< of k that are added up by themselves
  float* sums = nullptr;       ///< [shares, batch, m, n], if there are more of them than one
  uint16_t* planes = nullptr;  ///< room for plane_elements(), aligned to 16 bytes

  int64_t elements() const { return batch * m * n; }
  int64_t matrices_b() const { return one_b ? 1 : batch; }
  int64_t rows_b() const { return transpose_b ? n : k; }
  int64_t columns_b() const { return transpose_b ? k : n; }
  /// Of a row of a plane: a multiple of 16 bytes.
  int64_t stride_b() const { return divided_up(columns_b(), kPlanePiece) * kPlanePiece; }
  int64_t plane_elements() const { return kSplitPlanes * matrices_b() * rows_b() * stride_b(); }
};

struct SplitMaps {
  CUtensorMap a, b;
};

template <class Tiles>
backend::Outcome make_split_maps(const SplitCall& call, SplitMaps* maps) {
  const int64_t rows_a = call.transpose_a ? call.k : call.m, columns_a = call.transpose_a ? call.m : call.k;
  auto made = make_tensor_map(&maps->a, DType::f32, call.a,
                              TensorLayout<3>{{columns_a, rows_a, call.one_a ? 1 : call.batch},
                                              {columns_a, rows_a * columns_a},
                                              {kSplitPanel, call.transpose_a ? kSlice : kTileRows, 1}});
  if (!made.good()) return made;
  return make_tensor_map(&maps->b, DType::bf16, call.planes,
                         TensorLayout<3>{{call.columns_b(), call.rows_b(), kSplitPlanes * call.matrices_b()},
                                         {call.stride_b(), call.rows_b() * call.stride_b()},
                                         {kSlice, call.transpose_b ? Tiles::kColumns : kSlice, 1}});
}

template <class Tiles>
int64_t split_tiles_of(const SplitCall& call) {
  return divided_up(call.m, kTileRows) * divided_up(call.n, Tiles::kColumns) * call.batch;
}

template <class Tiles>
Division split_division_of(const SplitCall& call, int most_shares) {
  constexpr double kSliceTime = 0.48 + 1.92 * Tiles::kColumns / 128;
  return best_shares(split_tiles_of<Tiles>(call), divided_up(call.k, kSlice), call.elements(), most_shares,
                     {.slice = kSliceTime, .tile = 3.5, .least_slices = 2});
}

template <class Tiles>
SplitTask split_task_of(const SplitCall& call) {
  const auto pieces = [](int64_t size, int piece) { return static_cast<int>(divided_up(size, piece)); };
  SplitTask task;
  task.rows = static_cast<int>(call.m), task.columns = static_cast<int>(call.n);
  task.slices = pieces(call.k, kSlice);
  task.row_tiles = pieces(call.m, kTileRows), task.column_tiles = pieces(call.n, Tiles::kColumns);
  task.batch = static_cast<int>(call.batch), task.matrices_b = static_cast<int>(call.matrices_b());
  task.a_step = !call.one_a, task.b_step = !call.one_b;
  task.shares = call.shares, task.share_slices = pieces(task.slices, call.shares);
  task.c = call.c;
  if (call.shares > 1)
    task.sums = call.sums;
  else
    task.bias = call.bias, task.onto = call.onto;
  return task;
}

/// The planes of b. `start(blocks, threads, shared bytes, kernel, arguments...)` launches; returns what it
/// does.
template <class Start>
backend::Outcome start_planes(const SplitCall& call, Start&& start) {
  const int64_t rows = call.matrices_b() * call.rows_b(), pieces = rows * (call.stride_b() / kPlanePiece);
  return start(static_cast<unsigned>(divided_up(pieces, kPlaneThreads)), unsigned{kPlaneThreads}, 0u,
               split_planes, call.b, call.planes, rows, static_cast<int>(call.columns_b()),
               static_cast<int>(call.stride_b()));
}

template <class Tiles, Lies of_a, Lies of_b, class Start>
backend::Outcome run_split(const SplitCall& call, int multiprocessors, Start&& start) {
  SplitMaps maps;
  if (auto made = make_split_maps<Tiles>(call, &maps); !made.good()) return made;
  if (auto split = start_planes(call, start); !split.good()) return split;
  const int64_t tiles = split_tiles_of<Tiles>(call) * call.shares;
  auto started =
      start(static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors)), unsigned{kMatmulThreads},
            Tiles::kShared, split_tiles<Tiles, of_a, of_b>, maps.a, maps.b, split_task_of<Tiles>(call));
  if (!started.good() || call.shares == 1) return started;
  const auto add = [&](int64_t each, auto* kernel) {
    return start(static_cast<unsigned>(divided_up(call.elements(), 256 * each)), 256u, 0u, kernel,
                 static_cast<const float*>(call.sums), call.c, call.bias, call.onto, call.elements(),
                 static_cast<int>(call.n), call.shares);
  };
  return call.n % 4 == 0 ? add(4, add_split_shares<4>) : add(1, add_split_shares<1>);
}

/// The same for the layouts that the call says.
template <class Tiles, class Start>
backend::Outcome run_split_of(const SplitCall& call, int multiprocessors, Start&& start) {
  constexpr Lies k = Lies::along_k, m = Lies::along_m;
  if (call.transpose_a)
    return call.transpose_b ? run_split<Tiles, m, k>(call, multiprocessors, start)
                            : run_split<Tiles, m, m>(call, multiprocessors, start);
  return call.transpose_b ? run_split<Tiles, k, k>(call, multiprocessors, start)
                          : run_split<Tiles, k, m>(call, multiprocessors, start);
}

/// The ways to tile: f(way) of each.
inline constexpr int kSplitWays = 2, kMostSplitShares = 16;
template <class F>
auto with_split_tiles(int way, F f) {
  return way == 0 ? f(static_cast<SplitTiling<128, 2>*>(nullptr))
                  : f(static_cast<SplitTiling<96, 2>*>(nullptr));
}

/// The way that takes least time, and its shares.
inline Division best_split(const SplitCall& call, int most_shares, int* way) {
  Division best;
  for (int i = 0; i < kSplitWays; ++i) {
    const Division found =
        with_split_tiles(i, [&]<class Tiles>(Tiles*) { return split_division_of<Tiles>(call, most_shares); });
    if (i == 0 || found.microseconds < best.microseconds) best = found, *way = i;
  }
  return best;
}

/// The same product where an operand begins within 16 bytes: an element a thread, and slow.
static __global__ void __launch_bounds__(256) split_elements(const __grid_constant__ SplitCall call) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = int64_t{blockIdx.x} * 256 + threadIdx.x, n = at % call.n, m = at / call.n % call.m,
                batch = at / call.n / call.m;
  if (batch >= call.batch) return;
  const float* const a = call.a + (call.one_a ? 0 : batch * call.m * call.k);
  const float* const b = call.b + (call.one_b ? 0 : batch * call.k * call.n);
  float sum = 0;
  for (int64_t k = 0; k < call.k; ++k)
    sum += a[call.transpose_a ? k * call.m + m : m * call.k + k] *
           b[call.transpose_b ? n * call.k + k : k * call.n + n];
  if (call.bias) sum += call.bias[n];
  if (call.onto) sum += call.onto[at];
  call.c[at] = sum;
}

}  // namespace weft::cuda::hopper

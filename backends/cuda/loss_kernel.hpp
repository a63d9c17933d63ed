#pragma once
#include "loss_tiles.hpp"

// The losses of all rows, in two launches: each block finds those of a tile of the logits, then one block
// adds up what they found.
namespace weft::cuda {

/// What the warps of a block tell each other of a tile.
template <class S>
struct TileShared {
  RowExps of_warps[S::kThreads / kWarp];
  float losses[S::kTeams], counts[S::kTeams];
};

/// What each warp found becomes what its team found: in the team's first warp.
template <class S>
__device__ RowExps exps_of_team(const TilePlace<S>& place, RowExps e, TileShared<S>& shared) {
  if constexpr (S::kWarps > 1) {
    if (place.lane == 0) shared.of_warps[place.warp] = e;
    sync_block();
    if (place.warp % S::kWarps == 0) {
      e = place.lane < S::kWarps ? shared.of_warps[place.warp + place.lane] : RowExps{-INFINITY, 0};
      e = joined(e, S::kWarps);
    }
  }
  return e;
}

/// Writes what a tile found. `e` is that of the team.
template <class S>
__device__ void tell_tile(const LossTask<typename S::T>& task, const TilePlace<S>& place, RowExps e,
                          float logit, bool counts, TileShared<S>& shared) {
  const float loss = counts ? loss_of_target(e, logit) : 0, count = counts ? 1 : 0;
  if constexpr (S::kTeams > 1) {
    if (place.slot == 0) {
      const int team = place.warp / S::kWarps;
      shared.losses[team] = loss, shared.counts[team] = count;
    }
    sync_block();
    if (place.warp != 0) return;
    const bool has = place.lane < S::kTeams;
    const float losses = sum_of<S::kTeams>(has ? shared.losses[place.lane] : 0),
                rows = sum_of<S::kTeams>(has ? shared.counts[place.lane] : 0);
    if (place.lane == 0) task.found[blockIdx.x] = {losses, rows};
  } else if (threadIdx.x == 0) {
    task.found[blockIdx.x] = task.parts == 1 ? TwoFloats{loss, count} : TwoFloats{e.most, e.sum};
    if (task.parts > 1 && place.part == 0) task.logits[place.row] = {logit, count};
  }
}

/// Nothing is read of rows that do not count.
template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    losses_of_tiles(const __grid_constant__ LossTask<typename S::T> task) {
  __shared__ TileShared<S> shared;
  let_next_kernel_start();
  const int tile = static_cast<int>(blockIdx.x);
  const TilePlace<S> place(task, tile / task.parts, tile % task.parts);
  wait_for_kernels_before();
  const int of_class = class_of(task.classes, place.row, task.rows, task.columns);
  TileElements<S> x;
  place.read(of_class, x);
  const RowExps e = exps_of_team(place, exps_of_warp(x), shared);
  tell_tile<S>(task, place, e, widened(x.logit), of_class != kNoRow, shared);
}

constexpr int kFinishThreads = 512;  // as many as a block of tiles: the multiprocessors are full of those

constexpr int kPartsAtOnce = 8;  // that a lane asks for, of one row or of several

/// What tiles found, and how they are joined.
struct LossFinish {
  const TwoFloats *found, *logits;
  int tiles, rows, parts;
  int lanes;    // that take the parts of a row in turn: a power of two
  bool summed;  // nothing is divided by the number of rows
};

/// Losses and how many rows count, for this thread's share of all rows. Loads of many rows at once, since
/// nothing else of the GPU works meanwhile.
struct LossShare {
  float losses = 0, rows = 0;

  /// Of tiles of whole rows.
  __device__ void add_tiles(const LossFinish& task) {
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i < task.tiles; i += kFinishThreads) {
      const TwoFloats found = task.found[i];
      losses += found.first, rows += found.second;
    }
  }
  /// Of rows in parts, of which a lane asks for so many at once: of rows in two, by one lane.
  template <int kParts>
  __device__ void add_parts(const LossFinish& task) {
    constexpr int kRows = kPartsAtOnce / kParts;
    const int lane = static_cast<int>(threadIdx.x) % task.lanes, at_once = kFinishThreads / task.lanes,
              own = static_cast<int>(threadIdx.x) / task.lanes;
    for (int first = own; first - own < task.rows; first += kRows * at_once) {
      TwoFloats logits[kRows];
      RowExps all[kRows];
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const int row = first + j * at_once;
        logits[j] = lane == 0 && row < task.rows ? task.logits[row] : TwoFloats{0, 0};
        all[j] = {-INFINITY, 0};
      }
      for (int from = lane; from - lane < task.parts; from += kParts * task.lanes) {
        RowExps parts[kRows][kParts];
#pragma unroll
        for (int j = 0; j < kRows; ++j)
#pragma unroll
          for (int k = 0; k < kParts; ++k)
            parts[j][k] = part_of_row(task, first + j * at_once, from + k * task.lanes);
#pragma unroll
        for (int j = 0; j < kRows; ++j) join_parts(all[j], parts[j]);
      }
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        if constexpr (kParts > 2) all[j] = joined(all[j], task.lanes);
        const bool counts = logits[j].second != 0;
        losses += counts ? loss_of_target(all[j], logits[j].first) : 0, rows += counts ? 1 : 0;
      }
    }
  }

 private:
  static __device__ RowExps part_of_row(const LossFinish& task, int row, int part) {
    if (row >= task.rows || part >= task.parts) return {-INFINITY, 0};
    const TwoFloats found = task.found[int64_t{row} * task.parts + part];
    return {found.first, found.second};
  }
  // The relative error of fast_exp(x) grows as x does, but then the part adds little.
  template <int n>
  static __device__ void join_parts(RowExps& all, const RowExps (&parts)[n]) {
    float most = all.most;
#pragma unroll
    for (int k = 0; k < n; ++k) most = fmaxf(most, parts[k].most);
    const float shift = most == -INFINITY ? 0 : most;
    float sum = all.sum * fast_exp(all.most - shift);
#pragma unroll
    for (int k = 0; k < n; ++k) sum += parts[k].sum * fast_exp(parts[k].most - shift);
    all = {most, sum};
  }
};

/// The sums of both over a block of kFinishThreads, in its first warp; over_row of each would sync four
/// times.
__device__ inline TwoFloats sums_of_block(TwoFloats x) {
  constexpr int kWarps = kFinishThreads / kWarp;
  __shared__ TwoFloats of_warps[kWarps];
  const auto add = [&](int lanes) {
    for (int m = lanes / 2; m > 0; m /= 2)
      x = {x.first + shuffle_xor(x.first, m), x.second + shuffle_xor(x.second, m)};
  };
  add(kWarp);
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = x;
  sync_block();
  x = of_warps[threadIdx.x % kWarps];
  if (threadIdx.x < kWarp) add(kWarps);
  return x;
}

template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    loss_of_tiles(const __grid_constant__ LossFinish task, T* loss) {
  let_next_kernel_start();  // so that it is there when this one ends, which is soon
  wait_for_kernels_before();
  LossShare share;
  if (task.parts == 1)
    share.add_tiles(task);
  else if (task.parts == 2)
    share.add_parts<2>(task);
  else
    share.add_parts<kPartsAtOnce>(task);
  const TwoFloats all = sums_of_block({share.losses, share.rows});
  if (threadIdx.x == 0) *loss = narrowed<T>(all.first / (task.summed ? 1 : all.second));
}

}  // namespace weft::cuda

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

/// Parts that a lane asks for at once, of all its rows and of one.
constexpr int kPartsAtOnce = 16, kPartsOfLane = 8;

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
  /// Of rows in parts, of which a lane asks for so many at once.
  template <int kParts>
  __device__ void add_parts(const LossFinish& task) {
    constexpr int kRows = kPartsAtOnce / kParts;
    const int lane = static_cast<int>(threadIdx.x) % task.lanes, at_once = kFinishThreads / task.lanes,
              own = static_cast<int>(threadIdx.x) / task.lanes;
    for (int first = own; first - own < task.rows; first += kRows * at_once) {
      RowExps parts[kRows][kParts];
      TwoFloats logits[kRows];
      const auto read = [&](int from) {
#pragma unroll
        for (int j = 0; j < kRows; ++j)
#pragma unroll
          for (int k = 0; k < kParts; ++k)
            parts[j][k] = part_of_row(task, first + j * at_once, from + lane + k * task.lanes);
      };
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        const int row = first + j * at_once;
        logits[j] = lane == 0 && row < task.rows ? task.logits[row] : TwoFloats{0, 0};
      }
      read(0);
      RowExps all[kRows];
#pragma unroll
      for (int j = 0; j < kRows; ++j) all[j] = sum_of_parts(parts[j]);
      for (int from = kParts * task.lanes; from < task.parts; from += kParts * task.lanes) {
        read(from);
#pragma unroll
        for (int j = 0; j < kRows; ++j) all[j] = sum_of_exps(all[j], sum_of_parts(parts[j]));
      }
#pragma unroll
      for (int j = 0; j < kRows; ++j) {
        if (task.lanes > 1) all[j] = joined(all[j], task.lanes);
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
  template <int n>
  static __device__ RowExps sum_of_parts(const RowExps (&parts)[n]) {
    float most = parts[0].most, sum = 0;
#pragma unroll
    for (int k = 1; k < n; ++k) most = fmaxf(most, parts[k].most);
    const float shift = most == -INFINITY ? 0 : most;
#pragma unroll
    for (int k = 0; k < n; ++k) sum += parts[k].sum * expf(parts[k].most - shift);
    return {most, sum};
  }
};

template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    loss_of_tiles(const __grid_constant__ LossFinish task, T* loss) {
  using All = Layout<float, kFinishThreads, 0, 1>;  // all threads' numbers as one row
  let_next_kernel_start();                          // so that it is there when this one ends, which is soon
  wait_for_kernels_before();
  LossShare share;
  if (task.parts == 1)
    share.add_tiles(task);
  else if (task.parts <= 2)
    share.add_parts<2>(task);
  else
    share.add_parts<kPartsOfLane>(task);
  const float losses = over_row<All>(share.losses, Sum()),
              rows = task.summed ? 1 : over_row<All>(share.rows, Sum());
  if (threadIdx.x == 0) *loss = narrowed<T>(losses / rows);
}

}  // namespace weft::cuda

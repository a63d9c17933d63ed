#pragma once
#include "loss_tiles.hpp"

// The losses of all rows in one launch. A block takes tiles of the logits one after the other: while it
// computes one, its threads read the next one. The last block that ends adds up what was found, tile by tile,
// so that bits do not depend on how many blocks there are.
namespace weft::cuda {

/// What the warps of a block tell each other of a tile.
template <class S>
struct TileShared {
  RowExps of_warps[S::kThreads / kWarp];
  float losses[S::kTeams], counts[S::kTeams];
};

__device__ inline void store_found(float* found, int64_t tile, float first, float second) {
  found[2 * tile] = first, found[2 * tile + 1] = second;
}

/// Joins the warps of the tile, and writes what it found.
template <class S>
__device__ void tell_tile(const LossTask<typename S::T>& task, const TilePlace<S>& place, RowExps e,
                          float logit, bool counts, TileShared<S>& shared) {
  if constexpr (S::kWarps > 1) {
    if (place.lane == 0) shared.of_warps[place.warp] = e;
    sync_block();
    if (place.warp % S::kWarps == 0) {
      e = place.lane < S::kWarps ? shared.of_warps[place.warp + place.lane] : RowExps{-INFINITY, 0};
      e = joined(e, S::kWarps);
    }
  }
  if constexpr (S::kTeams > 1) {
    if (place.slot == 0) {
      const int team = place.warp / S::kWarps;
      shared.losses[team] = counts ? loss_of_target(e, logit) : 0, shared.counts[team] = counts ? 1 : 0;
    }
    sync_block();
    if (place.warp != 0) return;
    const bool has = place.lane < S::kTeams;
    const float loss = sum_of<S::kTeams>(has ? shared.losses[place.lane] : 0),
                rows = sum_of<S::kTeams>(has ? shared.counts[place.lane] : 0);
    if (place.lane == 0) store_found(task.found, place.row / S::kTeams, loss, rows);
  } else if (threadIdx.x == 0) {
    if (task.parts == 1)
      return store_found(task.found, place.row, counts ? loss_of_target(e, logit) : 0, counts);
    store_found(task.found, int64_t{place.row} * task.parts + place.part, e.most, e.sum);
    if (place.part == 0) task.logits[place.row] = logit;
  }
}

/// The tiles of a block, one after the other.
class TileWalk {
 public:
  __device__ TileWalk(int parts, int tiles)
      : parts_(parts), step_(static_cast<int>(gridDim.x)), left_(tiles - static_cast<int>(blockIdx.x)) {
    rows = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
    rows_of_step_ = step_ / parts, parts_of_step_ = step_ % parts;
  }
  __device__ bool there() const { return left_ > 0; }
  __device__ void next() {
    left_ -= step_, rows += rows_of_step_, part += parts_of_step_;
    if (part >= parts_) part -= parts_, ++rows;
  }

  int rows, part;

 private:
  int parts_, step_, left_, rows_of_step_, parts_of_step_;
};

/// Losses and how many rows count, for this thread's share of all rows.
struct LossShare {
  float losses = 0, rows = 0;

  /// Of tiles of whole rows.
  template <class S>
  __device__ void add_tiles(const LossTask<typename S::T>& task) {
#pragma unroll 8
    for (int64_t i = threadIdx.x; i < task.tiles; i += S::kThreads) {
      losses += load_shared_by_blocks(task.found + 2 * i);
      rows += load_shared_by_blocks(task.found + 2 * i + 1);
    }
  }
  /// Of rows in parts, which task.lanes lanes join.
  template <class S>
  __device__ void add_parts(const LossTask<typename S::T>& task) {
    constexpr int kAtOnce = 4;
    const int part = static_cast<int>(threadIdx.x) % task.lanes, at_once = S::kThreads / task.lanes;
    const auto exps = [&](int64_t row, int p) {
      if (row >= task.rows || p >= task.parts) return RowExps{-INFINITY, 0};
      const float* const from = task.found + 2 * (row * task.parts + p);
      return RowExps{load_shared_by_blocks(from), load_shared_by_blocks(from + 1)};
    };
    for (int64_t first = 0; first < task.rows; first += kAtOnce * at_once) {
      RowExps e[kAtOnce];
      float logits[kAtOnce];
      bool counts[kAtOnce];
      const int64_t own = first + static_cast<int>(threadIdx.x) / task.lanes;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int64_t row = own + j * at_once;
        e[j] = exps(row, part);
        counts[j] = part == 0 && row < task.rows && task.classes.of(row) != task.classes.ignored;
        logits[j] = counts[j] ? load_shared_by_blocks(task.logits + row) : 0;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        for (int p = part + task.lanes; p < task.parts; p += task.lanes)
          e[j] = sum_of_exps(e[j], exps(own + j * at_once, p));
        e[j] = joined(e[j], task.lanes);
        if (counts[j]) losses += loss_of_target(e[j], logits[j]), rows += 1;
      }
    }
  }
};

/// By the last block, which sees what all others wrote.
template <class S>
__device__ void finish_loss(const LossTask<typename S::T>& task) {
  using All = Layout<float, S::kThreads, 0, 1>;  // all threads' numbers as one row
  LossShare share;
  if (task.parts == 1)
    share.add_tiles<S>(task);
  else
    share.add_parts<S>(task);
  const float losses = over_row<All>(share.losses, Sum()),
              rows = task.classes.summed ? 1 : over_row<All>(share.rows, Sum());
  if (threadIdx.x != 0) return;
  if (task.wide)
    *static_cast<float*>(task.loss) = losses / rows;
  else
    *static_cast<typename S::T*>(task.loss) = narrowed<typename S::T>(losses / rows);
}

/// Whether this block is the last of all. Thread 0 wrote what the last one wants to see.
__device__ inline bool is_last_of_all(int* counter) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    fence_device();
    last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
    if (last) *counter = 0;
  }
  sync_block();
  if (last) fence_device();
  return last;
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    loss_of_tiles(const __grid_constant__ LossTask<typename S::T> task) {
  using Place = TilePlace<S>;
  __shared__ TileShared<S> shared[2];
  let_next_kernel_start();
  TileWalk own(task.parts, task.tiles), ahead = own;
  // What the kernel before still writes goes to the second cache, too.
  for (int i = 0; i < S::kPrefetches && ahead.there(); ++i, ahead.next())
    Place(task, ahead.rows, ahead.part).prefetch();
  wait_for_kernels_before();
  ahead = own;
  const auto class_at = [&](const TileWalk& at) {
    return RawClass(task.classes, Place(task, at.rows, at.part).row, task.rows);
  };
  RawClass next_class = class_at(own);
  TileElements<S> next;
  bool next_counts;
  // Reads the tile `ahead`, and the class of the one behind it, by which is decided whether that one is read.
  const auto read_ahead = [&] {
    const int of_class = next_class.get(task.classes, task.columns);
    next_counts = of_class != kNoRow;
    Place(task, ahead.rows, ahead.part).read(of_class, next);
    ahead.next();
    if (ahead.there()) next_class = class_at(ahead);
  };
  if (S::kAhead) read_ahead();
#pragma unroll 1
  for (int n = 0; own.there(); own.next(), n ^= 1) {
    if (!S::kAhead) read_ahead();
    TileElements<S> x = next;
    const bool counts = next_counts;
    if (S::kAhead && ahead.there()) read_ahead();
    const RowExps e = exps_of_warp(x);
    tell_tile<S>(task, Place(task, own.rows, own.part), e, widened_raw<typename S::T>(x.logit), counts,
                 shared[n]);
  }
  if (is_last_of_all(task.counter)) finish_loss<S>(task);
}

}  // namespace weft::cuda

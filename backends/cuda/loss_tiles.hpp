#pragma once
#include "class_rows.hpp"
#include "words.hpp"

// Rows of logits as tiles, of which each block takes one (loss_kernel.hpp): where a thread has elements of a
// tile, and what a warp finds of it.
namespace weft::cuda {

/// A tile is a row for each of kTeams teams of kWarps warps, or, where one team is all of the block, a part
/// of a longer row. Each lane reads kKept pieces of 16 bytes. kEdges: rows begin or end between pieces.
template <class T_, int kWarps_, bool kEdges_>
struct LossTile {
  using T = T_;
  static constexpr int kThreads = 512, kKept = 4;
  static constexpr int kBlocks = sizeof(T_) == 2 && !kEdges_ ? 4 : 3;  // of a multiprocessor
  static constexpr int kWarps = kWarps_, kTeams = kThreads / kWarp / kWarps;
  static constexpr int kWide = 16 / sizeof(T), kPieces = kKept * kWarps * kWarp;  // of a row
  static constexpr int kColumns = kPieces * kWide;
  static constexpr bool kEdges = kEdges_;
};

struct alignas(8) TwoFloats {
  float first, second;
};

template <class T>
struct LossTask {
  const T* x;
  Classes classes;
  TwoFloats* found;   // of each tile its loss and how many of its rows count, or the RowExps of a part
  TwoFloats* logits;  // of each row that has parts: its class's, and 1 if the row counts
  int rows, columns, parts, pieces;  // parts of a row, and pieces of a part
};

/// Combines what `lanes` neighbouring lanes found: in each of them.
__device__ inline RowExps joined(RowExps e, int lanes) {
  float most = e.most;
  for (int m = lanes / 2; m > 0; m /= 2) most = fmaxf(most, shuffle_xor(most, m));
  float sum = e.sum * expf(e.most - (most == -INFINITY ? 0 : most));
  for (int m = lanes / 2; m > 0; m /= 2) sum += shuffle_xor(sum, m);
  return {most, sum};
}

/// Classes of rows that do not count, or are not there, and of those outside the row.
inline constexpr int kNoRow = -2, kOutside = -1;

__device__ inline int class_of(const Classes& classes, int row, int rows, int columns) {
  if (row >= rows) return kNoRow;
  const int64_t target = classes.of(row);
  if (target == classes.ignored) return kNoRow;
  return target < 0 || target >= columns ? kOutside : static_cast<int>(target);
}

/// A thread's elements of a tile, with -infinity in the place of what it does not have, and, of the first
/// thread of a team that takes a row's first part, the logit of its class. All as it lies in memory: a thread
/// that computed on one of them would wait for it before it asks for the others.
template <class S>
struct TileElements {
  Words kept[S::kKept];
  typename S::T edge, logit;
};

/// Where a thread has elements of its team's row: pieces where memory is aligned, and perhaps one of the
/// single elements before the first and behind the last of them.
template <class S>
class TilePlace {
 public:
  using T = typename S::T;

  /// Of the teams' rows number `rows`, part `of_row`.
  __device__ TilePlace(const LossTask<T>& task, int rows, int of_row)
      : row(rows * S::kTeams + warp / S::kWarps),
        part(S::kTeams > 1 ? 0 : of_row),
        begin_(task.x + int64_t{row} * task.columns) {
    const bool there = row < task.rows;
    int all = task.columns / S::kWide;
    if constexpr (S::kEdges) {
      const int past = static_cast<int>(reinterpret_cast<uintptr_t>(begin_) % 16 / sizeof(T)),
                to_aligned = past == 0 ? 0 : S::kWide - past;
      head_ = to_aligned < task.columns ? to_aligned : task.columns;
      all = (task.columns - head_) / S::kWide;
      edges_ = there && part == 0 ? task.columns - all * S::kWide : 0;
      edge_ = slot < head_ ? slot : slot + all * S::kWide;
    }
    const int first = part * task.pieces, left = all - first;
    from_ = begin_ + head_ + (first + slot) * S::kWide;
    has_ = (there ? left < task.pieces ? left : task.pieces : 0) - slot;
  }
  /// What this thread has of a row of this class.
  __device__ void read(int of_class, TileElements<S>& to) const {
    const bool counts = of_class != kNoRow;  // else nothing is read
    const auto read_piece = [&](int k) { return counts && has(k); };
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (read_piece(k)) to.kept[k] = load_streamed<Words>(at(k));
    to.edge = narrowed<T>(-INFINITY);
    if constexpr (S::kEdges)
      if (counts && slot < edges_) to.edge = begin_[edge_];
    to.logit = narrowed<T>(NAN);
    if (of_class >= 0 && slot == 0 && part == 0) to.logit = begin_[of_class];
    if (read_piece(S::kKept - 1)) return;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (!read_piece(k)) to.kept[k] = words_of_one<T>(-INFINITY);
  }

  int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  int slot = warp % S::kWarps * kWarp + lane;  // of this thread in its team
  int row, part;

 private:
  __device__ bool has(int k) const { return has_ > k * S::kWarps * kWarp; }
  __device__ const T* at(int k) const { return from_ + k * S::kWarps * kWarp * S::kWide; }

  const T *begin_, *from_;
  int has_, head_ = 0, edges_ = 0, edge_ = 0;
};

/// The largest of 16-bit floats, which are compared in pairs, or of others.
template <class S>
__device__ float largest_in(const Words (&kept)[S::kKept]) {
  using T = typename S::T;
  if constexpr (sizeof(T) == 2) {
    uint32_t most = 0;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      const uint32_t(&pairs)[4] = kept[k].of;
      const uint32_t of_piece =
          larger_halves<T>(larger_halves<T>(pairs[0], pairs[1]), larger_halves<T>(pairs[2], pairs[3]));
      most = k == 0 ? of_piece : larger_halves<T>(most, of_piece);
    }
    const T low{static_cast<uint16_t>(most)}, high{static_cast<uint16_t>(most >> 16)};
    return fmaxf(-INFINITY, fmaxf(widened(low), widened(high)));  // no NaN
  } else {
    float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      float of_piece[S::kWide];
      widen<T>(kept[k], of_piece);
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) most[i % 2] = fmaxf(most[i % 2], of_piece[i]);
    }
    return fmaxf(most[0], most[1]);
  }
}

/// The sum of f over a thread's elements: four chains of additions are shorter than one.
template <class S, class F>
__device__ float sum_in(TileElements<S>& x, F f) {
  using T = typename S::T;
  float sums[4] = {S::kEdges ? f(widened(x.edge)) : 0};
#pragma unroll
  for (int k = 0; k < S::kKept; ++k) {
    if constexpr (sizeof(T) == 2) keep_in_registers(x.kept[k]);  // they were not widened before
    float of_piece[S::kWide];
    widen<T>(x.kept[k], of_piece);
#pragma unroll
    for (int i = 0; i < S::kWide; ++i) sums[i % 4] += f(of_piece[i]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Of a warp's elements.
template <class S>
__device__ RowExps exps_of_warp(TileElements<S>& x) {
  using T = typename S::T;
  float most = largest_in<S>(x.kept);
  if constexpr (S::kEdges) most = fmaxf(most, widened(x.edge));
  most = largest_of<kWarp>(most);
  const float shift = most == -INFINITY ? 0 : most;
  return {most, sum_of<kWarp>(sum_in(x, [&](float v) { return exp_for<T>(v - shift); }))};
}

}  // namespace weft::cuda

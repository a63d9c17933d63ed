#pragma once
#include "class_rows.hpp"

// Rows of logits as tiles, which blocks take one after the other (loss_kernel.hpp): where a thread has
// elements of a tile, and what a warp finds of it.
namespace weft::cuda {

/// A tile is a row for each of kTeams teams of kWarps warps, or, where one team is all of the block, a part
/// of a longer row. Each lane reads kKept pieces of 16 bytes. kEdges: rows begin or end between pieces.
template <class T_, int kWarps_, bool kEdges_>
struct LossTile {
  using T = T_;
  static constexpr int kThreads = 512, kKept = 4, kBlocks = 2;  // blocks of a multiprocessor
  static constexpr int kWarps = kWarps_, kTeams = kThreads / kWarp / kWarps;
  static constexpr int kWide = 16 / sizeof(T), kPieces = kKept * kWarps * kWarp;  // of a row
  static constexpr int kColumns = kPieces * kWide;
  static constexpr bool kEdges = kEdges_, kAhead = true, kFolds = sizeof(T) == 2;
  static constexpr int kPrefetches = 2;  // tiles, while the kernel before drains
};

template <class T>
struct LossTask {
  const T* x;
  Classes classes;
  float* found;   // of each tile two numbers: a loss and how many rows count, or the RowExps of a part
  float* logits;  // of each row that has parts, its class's
  void* loss;
  bool wide;                         // the loss is f32
  int* counter;                      // 0 before and after
  int rows, columns, parts, pieces;  // parts of a row, and pieces of a part
  int lanes;                         // that join the parts of a row: a power of two
  int tiles;
};

/// 16 bytes of elements as registers: of 16-bit ones a pair in each.
struct alignas(16) Words {
  uint32_t of[4];
};
template <class T>
__device__ Words words_of(float x) {
  uint32_t bits = as_bits(x);
  if constexpr (sizeof(T) == 2) bits = packed<T>(x, x);
  return {{bits, bits, bits, bits}};
}
template <class T>
__device__ float widened(const Words& words, int i) {
  if constexpr (sizeof(T) == 4) return as_float(words.of[i]);
  const uint32_t pair = words.of[i / 2];
  if constexpr (std::is_same_v<T, bf16>) return as_float(i % 2 ? pair & 0xffff0000u : pair << 16);
  return widened(f16{static_cast<uint16_t>(i % 2 ? pair >> 16 : pair)});
}

/// Combines what `lanes` neighbouring lanes found: in each of them.
__device__ inline RowExps joined(RowExps e, int lanes) {
  float most = e.most;
  for (int m = lanes / 2; m > 0; m /= 2) most = fmaxf(most, shuffle_xor(most, m));
  float sum = e.sum * expf(e.most - (most == -INFINITY ? 0 : most));
  for (int m = lanes / 2; m > 0; m /= 2) sum += shuffle_xor(sum, m);
  return {most, sum};
}

// What is read ahead stays as it lies in memory: who computed on it would wait for it.

/// An element as it lies in memory.
__device__ inline uint32_t raw(float x) { return as_bits(x); }
__device__ inline uint32_t raw(f16 x) { return x.bits; }
__device__ inline uint32_t raw(bf16 x) { return x.bits; }
template <class T>
__device__ float widened_raw(uint32_t x) {
  if constexpr (sizeof(T) == 4)
    return as_float(x);
  else
    return widened(T{static_cast<uint16_t>(x)});
}

/// Classes of rows that do not count, or are not there, and of those outside the row.
inline constexpr int kNoRow = -2, kOutside = -1;

struct RawClass {
  uint32_t low, high;
  bool there;

  __device__ RawClass(const Classes& classes, int row, int rows) : low(0), high(0), there(row < rows) {
    const auto* const words = static_cast<const uint32_t*>(classes.of_rows);
    if (there) low = words[classes.wide ? int64_t{row} * 2 : row];
    if (there && classes.wide) high = words[int64_t{row} * 2 + 1];
  }
  __device__ int get(const Classes& classes, int columns) const {
    const int64_t target =
        classes.wide ? static_cast<int64_t>(uint64_t{high} << 32 | low) : static_cast<int32_t>(low);
    if (!there || target == classes.ignored) return kNoRow;
    return target < 0 || target >= columns ? kOutside : static_cast<int>(target);
  }
};

/// A thread's elements of a tile, with -infinity in the place of what it does not have, and, of the first
/// thread of a team that takes a row's first part, the logit of its class.
template <class S>
struct TileElements {
  Words kept[S::kKept];
  uint32_t edge, logit;
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
        there(row < task.rows),
        begin_(task.x + int64_t{row} * task.columns) {
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
  __device__ void prefetch() const {
    constexpr int kLine = 128 / 16;  // pieces
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (slot % kLine == 0 && has(k)) cuda::prefetch(at(k));
  }
  /// What this thread has of a row of this class.
  __device__ void read(int of_class, TileElements<S>& to) const {
    const bool counts = of_class != kNoRow;  // else nothing is read
    const auto read_piece = [&](int k) { return counts && has(k); };
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (read_piece(k)) to.kept[k] = load_streamed<Words>(at(k));
    to.edge = raw(narrowed<T>(-INFINITY));
    if constexpr (S::kEdges)
      if (counts && slot < edges_) to.edge = raw(begin_[edge_]);
    to.logit = raw(narrowed<T>(NAN));
    if (of_class >= 0 && slot == 0 && part == 0) to.logit = raw(begin_[of_class]);
    if (read_piece(S::kKept - 1)) return;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (!read_piece(k)) to.kept[k] = words_of<T>(-INFINITY);
  }

  int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  int slot = warp % S::kWarps * kWarp + lane;  // of this thread in its team
  int row, part;
  bool there;

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
    for (int k = 0; k < S::kKept; ++k)
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) most[i % 2] = fmaxf(most[i % 2], widened<T>(kept[k], i));
    return fmaxf(most[0], most[1]);
  }
}

/// The sum of f over a thread's elements: four chains of additions are shorter than one.
template <class S, class F>
__device__ float sum_in(TileElements<S>& x, F f) {
  using T = typename S::T;
  float sums[4] = {S::kEdges ? f(widened_raw<T>(x.edge)) : 0};
#pragma unroll
  for (int k = 0; k < S::kKept; ++k) {
    if constexpr (sizeof(T) == 2) keep_in_registers(x.kept[k]);  // they were not widened before
#pragma unroll
    for (int i = 0; i < S::kWide; ++i) sums[i % 4] += f(widened<T>(x.kept[k], i));
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Of a warp's elements.
template <class S>
__device__ RowExps exps_of_warp(TileElements<S>& x) {
  using T = typename S::T;
  float most = largest_in<S>(x.kept);
  if constexpr (S::kEdges) most = fmaxf(most, widened_raw<T>(x.edge));
  most = largest_of<kWarp>(most);
  const float shift = most == -INFINITY ? 0 : most;
  float sum;
  constexpr float kLog2E = 1.4426950408889634f, kFoldable = 65536;
  if (S::kFolds && fabsf(shift) < kFoldable) {
    // exp2(x log2(e) - shift log2(e)), one multiply-add; then what was rounded off the second product.
    const float scaled = shift * kLog2E;
    sum = sum_in(x, [&](float v) { return fast_exp2(fmaf(v, kLog2E, -scaled)); });
    sum *= fast_exp2(-fmaf(shift, kLog2E, -scaled));
  } else {
    sum = sum_in(x, [&](float v) { return exp_for<T>(v - shift); });
  }
  return {most, sum_of<kWarp>(sum)};
}

}  // namespace weft::cuda

#pragma once
#include "exchange.hpp"
#include "rows.hpp"
#include "words.hpp"

// Rows for teams of warps. A team takes a row, and all that it needs, at once; or, where rows are so long
// that reading a weight anew for each of them would take time, one row after another: then a team keeps the
// weight in registers, and while it computes a row, the next ones are on their way to shared memory.
namespace weft::cuda {

/// A row is taken by kWarps warps in each of the kCluster blocks of a cluster; each lane has kKept pieces of
/// it, of 16 bytes. Blocks have kTeams teams; kBlocks blocks are on a multiprocessor. kDepth: rows of a team
/// that are in shared memory, 0 where it takes one row.
template <class T_, int kWarps_, int kCluster_, int kDepth_, int kBlocks_, int kTeams_ = 1, int kKept_ = 4>
struct Team {
  using T = T_;
  static constexpr int kWarps = kWarps_, kCluster = kCluster_, kDepth = kDepth_, kBlocks = kBlocks_,
                       kTeams = kTeams_, kKept = kKept_;
  static constexpr int kWide = 16 / sizeof(T), kOfWarp = kWarp * kWide;  // elements
  static constexpr int kThreads = kWarp * kWarps * kTeams;
  static constexpr int kShares = kWarps * kCluster;  // A row's warps have one each.
  static constexpr int kStride = kShares * kOfWarp;  // from one piece of a lane to the next
  static constexpr int kMostColumns = kStride * kKept;
  static constexpr int kSlot = kKept * kThreads;  // pieces
  static constexpr size_t kShared = size_t{kDepth} * kSlot * 16;
  /// Whether a team finds its next row's spread before it has the whole of this one's, which takes a while to
  /// come from the other blocks.
  static constexpr bool kOverlaps = kDepth > 0 && kCluster > 1;
  /// Whether what rows share is read when it is needed, so many pieces of it at a time: two blocks of 16
  /// warps have no registers to keep it.
  static constexpr bool kLate = kDepth == 0 && kWarps == 16;
  static constexpr int kAtOnce = !kLate ? kKept : kKept > 4 ? 1 : 2;
  /// Whether elements are computed anew for each pass, rather than kept in f32: a thread has few registers.
  static constexpr bool kRepeats = sizeof(T) == 2 && (kKept > 4 || kOverlaps);
  /// Whether sums of squares are as exact as a second pass makes them.
  static constexpr bool kExact = sizeof(T) == 4;
  static_assert(kTeams == 1 || kShares == 1, "sync_block is for one team");
};

/// A cluster of n blocks, where there are any.
template <int n>
inline constexpr int cluster_of = kCluster > n ? n : kCluster;

/// What a lane has of each row.
template <class S>
struct TeamPlace {
  __device__ explicit TeamPlace(int n) : columns(n) {}

  __device__ int column(int k) const { return own + k * S::kStride; }
  __device__ bool has(int k) const { return column(k) < columns; }
  /// Elements that this lane has, and 1 / n of them.
  __device__ int own_count() const {
    int n = 0;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) n = has(k) ? (k + 1) * S::kWide : n;
    return n;
  }
  __device__ float of_own_count() const {
    float of = 0;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) of = has(k) ? 1.0f / static_cast<float>((k + 1) * S::kWide) : of;
    return of;
  }
  /// Elements of a row that warp number `of` has.
  __device__ int count(int of) const {
    if (S::kShares == 1) return columns;
    if (columns == S::kMostColumns) return S::kKept * S::kOfWarp;
    int n = 0;
    for (int k = 0; k < S::kKept; ++k) {
      const int left = columns - k * S::kStride - of * S::kOfWarp;
      n += left < 0 ? 0 : left < S::kOfWarp ? left : S::kOfWarp;
    }
    return n;
  }

  int columns;
  int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  int share = static_cast<int>(blockIdx.x) % S::kCluster * S::kWarps + warp % S::kWarps;
  int own = share * S::kOfWarp + lane * S::kWide;
  /// The first row of this team, and how far it is to its next one, if it takes several.
  int64_t first = int64_t{blockIdx.x} / S::kCluster * S::kTeams + warp / S::kWarps;
  int64_t stride = int64_t{gridDim.x} / S::kCluster * S::kTeams;
};

/// The rows of a team. A thread reads from shared memory what it has copied itself. Pieces that it has not
/// are zeros.
template <class S>
class TeamRows {
 public:
  using T = typename S::T;

  __device__ TeamRows(const TeamPlace<S>& place, const T* x, int64_t rows)
      : place_(place), x_(x), rows_(rows), own_(S::kDepth ? dynamic_shared<Words>() + threadIdx.x : nullptr) {
    for (int i = 0; i < S::kDepth; ++i) copy(i, place.first + i * place.stride);
    if constexpr (S::kDepth == 0) {
      const T* const from = x + place.first * place.columns + place.own;
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) {
        only_[k] = {};
        if (place.first < rows && place.has(k)) only_[k] = load_streamed<Words>(from + k * S::kStride);
      }
    }
  }
  /// Waits for the team's next row, `row`, and reads it: it makes way for one that comes later.
  __device__ void take(Words (&kept)[S::kKept], int64_t row) {
    if constexpr (S::kDepth == 0) {
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) kept[k] = only_[k];
    } else {
      wait_for_copies<S::kDepth - 1>();
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) kept[k] = own_[slot_ * S::kSlot + k * S::kThreads];
      copy(slot_, row + S::kDepth * place_.stride);
      slot_ = slot_ + 1 == S::kDepth ? 0 : slot_ + 1;
    }
  }

 private:
  __device__ void copy(int slot, int64_t row) const {
    const T* const from = x_ + row * place_.columns + place_.own;
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      copy_async(own_ + slot * S::kSlot + k * S::kThreads,
                 row < rows_ && place_.has(k) ? from + k * S::kStride : x_, row < rows_ && place_.has(k));
    end_of_copies();
  }

  const TeamPlace<S>& place_;
  const T* x_;
  int64_t rows_;
  Words* own_;
  Words only_[S::kDepth ? 1 : S::kKept];
  int slot_ = 0;
};

/// This thread's pieces of what all rows share, kAtOnce of them. Without memory, all elements are `missing`.
template <class S>
struct KeptRow {
  using T = typename S::T;

  __device__ void read(const TeamPlace<S>& place, const T* all, float missing, int first = 0) {
    if (all) {
      const T* const from = all + place.own + first * S::kStride;
#pragma unroll
      for (int k = 0; k < S::kAtOnce; ++k)
        if (place.has(first + k)) of[k] = *reinterpret_cast<const Words*>(from + k * S::kStride);
    } else {
#pragma unroll
      for (int k = 0; k < S::kAtOnce; ++k) of[k] = words_of_one<T>(missing);
    }
  }
  /// A piece in f32: were it widened before the first row, it would take twice as many registers.
  __device__ void widen_piece(int k, float (&to)[S::kWide]) {
    if constexpr (sizeof(T) == 2) keep_in_registers(of[k]);
    widen<T>(of[k], to);
  }

  Words of[S::kAtOnce];
};

/// Writes the pieces of a lane that `piece(k)` gives, by stores that leave the second cache to others if the
/// result is too long for it.
template <class S, class F>
__device__ void store_pieces(const TeamPlace<S>& place, typename S::T* row, bool streamed, int first,
                             F piece) {
  typename S::T* const to = row + place.own + first * S::kStride;
#pragma unroll
  for (int k = 0; k < S::kAtOnce; ++k) {
    if (!place.has(first + k)) continue;
    const Words all = piece(first + k);
    streamed ? store_streamed(to + k * S::kStride, all)
             : void(*reinterpret_cast<Words*>(to + k * S::kStride) = all);
  }
}

/// Whether a result is too long for the second cache to keep it.
inline bool is_streamed(backend::TensorView y) {
  return y.size() * static_cast<int64_t>(byte_size(y.dtype())) > (24 << 20);
}
/// Starts a kernel whose teams take rows: as many teams as there are rows, or as run at the same time.
template <class S, class... P, class... A>
Outcome start_teams(const backend::Launch& l, int64_t rows, void (*kernel)(P...), A... arguments) {
  const BlockSize block(S::kThreads, S::kCluster);
  int64_t clusters = (rows + S::kTeams - 1) / S::kTeams;
  if constexpr (S::kDepth > 0) {
    int at_once = queue_of(l).device.multiprocessors * S::kBlocks;
    if constexpr (S::kCluster > 1)
      if (auto known = clusters_at_once(l, block, S::kShared, kernel, at_once); !known.good()) return known;
    clusters = std::min<int64_t>(clusters, std::max(at_once, 1));
  }
  return start(l, Grid{static_cast<unsigned>(clusters * S::kCluster)}, block, S::kShared, kernel,
               arguments...);
}

}  // namespace weft::cuda

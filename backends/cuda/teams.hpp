#pragma once
#include "exchange.hpp"
#include "rows.hpp"

// Rows for teams of warps. A team takes a row, and all that it needs, at once; or, where rows are so long
// that reading a weight anew for each of them would take time, one row after another: then a team keeps the
// weight in registers, and while it computes a row, the next ones are on their way to shared memory.
namespace weft::cuda {

/// A row is taken by kWarps warps in each of the kCluster blocks of a cluster; each lane has 4 pieces of it,
/// of 16 bytes. Blocks have kTeams teams; kBlocks blocks are on a multiprocessor. kDepth: rows of a team that
/// are in shared memory, 0 where it takes one row.
template <class T_, int kWarps_, int kCluster_, int kDepth_, int kBlocks_, int kTeams_ = 1>
struct Team {
  using T = T_;
  static constexpr int kWarps = kWarps_, kCluster = kCluster_, kDepth = kDepth_, kBlocks = kBlocks_,
                       kTeams = kTeams_, kKept = 4;
  static constexpr int kWide = 16 / sizeof(T), kOfWarp = kWarp * kWide;  // elements
  static constexpr int kThreads = kWarp * kWarps * kTeams;
  static constexpr int kShares = kWarps * kCluster;  // A row's warps have one each.
  /// Whether what rows share is read when it is needed: two such blocks have no registers to keep it.
  static constexpr bool kLate = kDepth == 0 && kWarps == 16;
  /// Whether elements are widened anew for each pass: a thread has few registers.
  static constexpr bool kPacked = kDepth == 0 && sizeof(T) == 2;
  static constexpr int kMostColumns = kShares * kOfWarp * kKept;
  static constexpr int kSlot = kKept * kThreads;  // pieces
  static constexpr size_t kShared = size_t{kDepth} * kSlot * 16;
  static_assert(kTeams == 1 || kShares == 1, "sync_block is for one team");
};

/// What a lane has of each row.
template <class S>
struct TeamPlace {
  __device__ explicit TeamPlace(int n) : columns(n) {}

  __device__ int column(int k) const { return (k * S::kShares + share) * S::kOfWarp + lane * S::kWide; }
  __device__ bool has(int k) const { return column(k) < columns; }
  /// Elements of a row that warp number `of` has.
  __device__ int count(int of) const {
    int n = 0;
    for (int k = 0; k < S::kKept; ++k) {
      const int left = columns - (k * S::kShares + of) * S::kOfWarp;
      n += left < 0 ? 0 : left < S::kOfWarp ? left : S::kOfWarp;
    }
    return n;
  }

  int columns;
  int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  int share = static_cast<int>(blockIdx.x) % S::kCluster * S::kWarps + warp % S::kWarps;
  /// The first row of this team, and how far it is to its next one, if it takes several.
  int64_t first = int64_t{blockIdx.x} / S::kCluster * S::kTeams + warp / S::kWarps;
  int64_t stride = int64_t{gridDim.x} / S::kCluster * S::kTeams;
};

/// The rows of a team. A thread reads from shared memory what it has copied itself.
template <class S>
class TeamRows {
 public:
  using T = typename S::T;
  using P = Piece<T, S::kWide>;

  __device__ TeamRows(const TeamPlace<S>& place, const T* x, int64_t rows)
      : place_(place), x_(x), rows_(rows), own_(S::kDepth ? dynamic_shared<P>() + threadIdx.x : nullptr) {
    for (int i = 0; i < S::kDepth; ++i) copy(i, place.first + i * place.stride);
    if constexpr (S::kDepth == 0)
#pragma unroll
      for (int k = 0; k < S::kKept; ++k)
        if (place.first < rows && place.has(k))
          only_[k] = load_streamed<P>(x + place.first * place.columns + place.column(k));
  }
  /// Waits for the team's next row, `row`, and reads it: it makes way for one that comes later.
  __device__ void take(P (&kept)[S::kKept], int64_t row) {
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
#pragma unroll
    for (int k = 0; k < S::kKept; ++k)
      if (place_.has(k) && row < rows_)
        copy_async(own_ + slot * S::kSlot + k * S::kThreads, x_ + row * place_.columns + place_.column(k),
                   true);
    end_of_copies();
  }

  const TeamPlace<S>& place_;
  const T* x_;
  int64_t rows_;
  P* own_;
  P only_[S::kDepth ? 1 : S::kKept];
  int slot_ = 0;
};

/// This thread's pieces of what all rows share. Without memory, all elements are `missing`.
template <class S>
struct KeptRow {
  using T = typename S::T;
  using P = Piece<T, S::kWide>;

  __device__ void read(const TeamPlace<S>& place, const T* from, float missing) {
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      if (from) {
        if (place.has(k)) of[k] = *reinterpret_cast<const P*>(from + place.column(k));
      } else {
#pragma unroll
        for (int i = 0; i < S::kWide; ++i) of[k].of[i] = narrowed<T>(missing);
      }
    }
  }
  /// A piece as it lies in registers: were it widened before the first row, it would take twice as many.
  __device__ const P& piece(int k) {
    if constexpr (sizeof(T) == 2) keep_in_registers(of[k]);
    return of[k];
  }

  P of[S::kKept];
};

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

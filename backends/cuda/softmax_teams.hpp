#pragma once
#include "teams.hpp"

// Softmax by teams, each of which takes one row and is done.
namespace weft::cuda {

/// The largest of some elements, and the sum of the exponentials of how far all of them are from it.
struct Weighed {
  float most, sum;
};

/// What the exponentials of a share are computed from: those of nothing but -inf are 0.
__device__ inline float base_of(float most) { return most == -INFINITY ? 0 : most; }

/// A lane's elements of a row, and their exponentials.
template <class S>
class LaneExponentials {
 public:
  using T = typename S::T;

  __device__ LaneExponentials(const TeamPlace<S>& place, TeamRows<S>& source, int64_t row) : place_(place) {
    source.take(kept_, row);
    if constexpr (!S::kRepeats)
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) widen<T>(kept_[k], all_[k]);
  }
  __device__ float largest() {
    float most[2] = {-INFINITY, -INFINITY};
    each([&](int, int i, float v) { most[i % 2] = fmaxf(most[i % 2], v); });
    return fmaxf(most[0], most[1]);
  }
  /// Computes the exponentials of how far elements are from `base`, and adds them up.
  __device__ float sum(float base) {
    base_ = base;
    float sums[2]{};
    each([&](int k, int i, float v) {
      const float e = exp_for<T>(v - base);
      if constexpr (!S::kRepeats) all_[k][i] = e;
      sums[i % 2] += e;
    });
    return sums[0] + sums[1];
  }
  /// Piece k of the exponentials, scaled.
  __device__ Words scaled(int k, float scale) {
    float v[S::kWide], results[S::kWide];
    elements(k, v);
#pragma unroll
    for (int i = 0; i < S::kWide; ++i) results[i] = (S::kRepeats ? exp_for<T>(v[i] - base_) : v[i]) * scale;
    return words_of<T>(results);
  }

 private:
  /// f(piece, place in it, element)
  template <class F>
  __device__ void each(F f) {
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      if (!place_.has(k)) continue;
      float v[S::kWide];
      elements(k, v);
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) f(k, i, v[i]);
    }
  }
  __device__ void elements(int k, float (&to)[S::kWide]) {
    if constexpr (S::kRepeats) {
      keep_in_registers(kept_[k]);
      widen<T>(kept_[k], to);
    } else {
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) to[i] = all_[k][i];
    }
  }

  const TeamPlace<S>& place_;
  Words kept_[S::kKept];
  float base_ = 0, all_[S::kRepeats ? 1 : S::kKept][S::kWide];
};

/// What the exponentials of a warp, whose largest element is `own`, are to be multiplied by. All shares have
/// been sent, or will be. Shares of nothing but -inf count as 0, unless the whole row is: that gives NaN.
template <class S, class E>
__device__ float scale_of_row(const TeamPlace<S>& place, E& exchange, float own) {
  constexpr int kEach = (S::kShares + kWarp - 1) / kWarp;  // shares that a lane joins
  exchange.wait(0, threadIdx.x == 0);
  Weighed of[kEach];
  float most = -INFINITY, sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int share = place.lane + j * kWarp;
    of[j] = S::kShares % kWarp == 0 || share < S::kShares ? exchange.read(0, share) : Weighed{-INFINITY, 0};
    most = fmaxf(most, of[j].most);
  }
  most = largest_of<kWarp>(most);
#pragma unroll
  for (int j = 0; j < kEach; ++j) sum += of[j].sum * exp_for<typename S::T>(of[j].most - most);
  return exp_for<typename S::T>(own - most) / sum_of<kWarp>(sum);
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    softmax_of_teams(const typename S::T* x, typename S::T* y, bool streamed, int64_t rows, int columns) {
  static_assert(S::kDepth == 0);
  using E = Exchange<S::kShares, S::kCluster, Weighed>;
  __shared__ E exchange;
  exchange.open();
  wait_for_kernels_before();
  let_next_kernel_start();
  const TeamPlace<S> place(columns);
  TeamRows<S> source(place, x, rows);
  exchange.wait_until_open();
  const int64_t row = place.first;
  if (row >= rows) return;
  LaneExponentials<S> lane(place, source, row);
  const float most = largest_of<kWarp>(lane.largest());
  const float sum = sum_of<kWarp>(lane.sum(S::kShares > 1 ? base_of(most) : most));
  float scale;
  if constexpr (S::kShares > 1) {
    exchange.send(0, place.share, place.lane, {most, sum});
    scale = scale_of_row(place, exchange, most);
  } else {
    scale = 1 / sum;
  }
#pragma unroll
  for (int first = 0; first < S::kKept; first += S::kAtOnce)
    store_pieces(place, y + row * columns, streamed, first, [&](int k) { return lane.scaled(k, scale); });
}

/// f(Team*) with the team for rows of so many columns; false where there is none.
template <class T, class F>
bool with_softmax_team(int64_t columns, F f) {
  const auto fits = [&]<class S>(S*) {
    return columns <= S::kMostColumns && (f(static_cast<S*>(nullptr)), true);
  };
  return fits(static_cast<Team<T, 1, 1, 0, 5, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 2, 1, 0, 16>*>(nullptr)) ||
         fits(static_cast<Team<T, 4, 1, 0, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 8, 1, 0, 4>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, 1, 0, 2>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, 1, 0, 2, 1, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 8, cluster_of<4>, 0, 4, 1, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 8, cluster_of<8>, 0, 4, 1, 8>*>(nullptr));
}

}  // namespace weft::cuda

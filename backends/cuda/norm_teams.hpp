#pragma once
#include "teams.hpp"

// layer_norm and rms_norm by teams, which read each element and each weight once.
namespace weft::cuda {

template <class T>
struct NormPointers {
  const T *x, *weight, *bias;
  T* y;
  bool streamed;  // y is too long for the second cache to keep it
};

/// Sums over a lane's elements, in chains: several are shorter than one.
struct Sums {
  template <int n>
  __device__ void add(const float (&x)[n]) {
#pragma unroll
    for (int i = 0; i < n; ++i) of[i % 4] += x[i];
  }
  template <int n>
  __device__ void add_squares(const float (&x)[n], float from) {
#pragma unroll
    for (int i = 0; i < n; ++i) of[i % 4] += (x[i] - from) * (x[i] - from);
  }
  __device__ float all() const { return (of[0] + of[1]) + (of[2] + of[3]); }

  float of[4]{};
};

/// What roundings made of a sum of squares; a NaN stays one.
__device__ inline float not_negative(float x) { return x < 0 ? 0 : x; }

/// A lane's elements of a row. Where their spread is found in one pass, they are less the first of them. Then
/// n squares are at most n times what they are about the mean, however far from 0 the row is.
template <class S, bool kCentered>
class LaneRow {
 public:
  using T = typename S::T;
  static constexpr bool kShifted = kCentered && !S::kExact;

  __device__ void take(const TeamPlace<S>& place, TeamRows<S>& source, int64_t row) {
    source.take(kept_, row);
    if constexpr (kShifted) {
      float of_first[S::kWide];
      widen<T>(kept_[0], of_first);
      first_ = of_first[0];
      const Words like_first = words_of_one<T>(first_);
#pragma unroll
      for (int k = 1; k < S::kKept; ++k)
        if (!place.has(k)) kept_[k] = like_first;
    }
    if constexpr (!S::kRepeats)
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) compute(k, all_[k]);
  }
  /// What the elements are less of.
  __device__ float from() const { return kShifted ? first_ : 0; }
  __device__ void piece(int k, float (&to)[S::kWide]) {
    if constexpr (S::kRepeats) {
      keep_in_registers(kept_[k]);
      compute(k, to);
    } else {
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) to[i] = all_[k][i];
    }
  }

 private:
  __device__ void compute(int k, float (&to)[S::kWide]) const {
    widen<T>(kept_[k], to);
    if constexpr (kShifted)
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) to[i] -= first_;
  }

  Words kept_[S::kKept];
  float first_ = 0, all_[S::kRepeats ? 1 : S::kKept][S::kWide];
};

/// The spread of all that the lanes of a warp have spreads of. The squares about a mean of all are those
/// about the means of shares, and those of the shares' distances (Chan, Golub and LeVeque, 1983). Where they
/// need not be as exact as a second pass, both sums go through the warp together, of distances to one of the
/// means; its square is at most as many times theirs as there are shares.
template <bool kExact>
__device__ Spread spread_of_warp(const Spread& share, float count, float one_mean, float of_all) {
  if constexpr (kExact) {
    const float mean = sum_of<kWarp>(count * share.mean) * of_all, apart = share.mean - mean;
    return {mean, sum_of<kWarp>(share.squares + count * apart * apart)};
  } else {
    const float apart = share.mean - one_mean;
    float sum = count * apart, squares = share.squares + sum * apart;
#pragma unroll
    for (int m = kWarp / 2; m > 0; m /= 2) {
      const float more = shuffle_xor(sum, m), more_squares = shuffle_xor(squares, m);
      sum += more, squares += more_squares;
    }
    const float mean = sum * of_all;
    return {one_mean + mean, not_negative(squares - mean * sum)};
  }
}

/// What a team finds out about its rows. Squares without a mean are about 0.
template <class S, bool kCentered>
class RowSpread {
 public:
  using E = Exchange<S::kShares, S::kCluster, Spread, S::kOverlaps ? 4 : 2>;
  static constexpr int kEach = (S::kShares + kWarp - 1) / kWarp;  // shares that a lane joins

  __device__ RowSpread(const TeamPlace<S>& place, E& exchange) : place_(place), exchange_(exchange) {
    if constexpr (!kCentered) return;
    const int n = place.count(place.share);
    of_warp_ = n ? 1 / static_cast<float>(n) : 0;
    count_ = static_cast<float>(place.own_count()), of_count_ = place.of_own_count();
#pragma unroll
    for (int j = 0; j < kEach; ++j) counts_[j] = has(j) ? static_cast<float>(place.count(share(j))) : 0;
  }
  /// Of this warp's share of row n, which it sends to the others.
  __device__ Spread find(LaneRow<S, kCentered>& row, uint32_t n) {
    Sums sums, squares;
    const auto each = [&](auto f) {
#pragma unroll
      for (int k = 0; k < S::kKept; ++k) {
        float v[S::kWide];
        row.piece(k, v);
        f(k, v);
      }
    };
    Spread s;
    if constexpr (!kCentered) {
      each([&](int, const float(&v)[S::kWide]) { squares.add_squares(v, 0); });
      s = {0, sum_of<kWarp>(squares.all())};
    } else if constexpr (S::kExact) {
      each([&](int, const float(&v)[S::kWide]) { sums.add(v); });
      const float mean = sum_of<kWarp>(sums.all()) * of_warp_;
      each([&](int k, const float(&v)[S::kWide]) {
        if (place_.has(k)) squares.add_squares(v, mean);
      });
      s = {mean, sum_of<kWarp>(squares.all())};
    } else {
      each([&](int, const float(&v)[S::kWide]) { sums.add(v), squares.add_squares(v, 0); });
      const float apart = sums.all() * of_count_;
      s = {row.from() + apart, not_negative(squares.all() - apart * apart * count_)};
      s = spread_of_warp<false>(s, count_, shuffle(s.mean, 0), of_warp_);
    }
    if constexpr (S::kShares > 1) exchange_.send(n, place_.share, place_.lane, s);
    return s;
  }
  /// Of all of row n.
  __device__ Spread join(uint32_t n, float of_all) {
    exchange_.wait(n, threadIdx.x == 0);
    Spread all{0, 0};
    float count = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (!has(j)) continue;
      const Spread more = exchange_.read(n, share(j));
      all = j == 0 ? more : joined(all, count, more, counts_[j]);
      count += counts_[j];
    }
    if constexpr (!kCentered) return {0, sum_of<kWarp>(all.squares)};
    return spread_of_warp<S::kExact>(all, count, exchange_.read(n, 0).mean, of_all);
  }

 private:
  __device__ int share(int j) const { return place_.lane + j * kWarp; }
  __device__ bool has(int j) const { return S::kShares % kWarp == 0 || share(j) < S::kShares; }
  /// `a` comes before b in its row, and may be empty only if b is.
  __device__ static Spread joined(const Spread& a, float of_a, const Spread& b, float of_b) {
    if constexpr (!kCentered) return {0, a.squares + b.squares};
    if (of_b == 0) return a;
    const float part = of_b / (of_a + of_b), apart = b.mean - a.mean;
    return {a.mean + apart * part, a.squares + b.squares + apart * apart * part * of_a};
  }

  const TeamPlace<S>& place_;
  E& exchange_;
  float of_warp_ = 0, count_ = 0, of_count_ = 0, counts_[kEach]{};
};

/// Stores a row's results, from its elements and what rows share.
template <class S, bool kCentered>
class NormedRows {
 public:
  using T = typename S::T;

  __device__ NormedRows(const TeamPlace<S>& place, const NormPointers<T>& all) : place_(place), all_(all) {
    if constexpr (!S::kLate) read(0);
  }
  /// Has the first of what rows share read while a row's spread is found.
  __device__ void prepare() {
    if constexpr (S::kLate) read(0);
  }
  __device__ void store(LaneRow<S, kCentered>& kept, int64_t row, float mean, float scale) {
    const float apart = mean - kept.from();
#pragma unroll
    for (int first = 0; first < S::kKept; first += S::kAtOnce) {
      if (S::kLate && first > 0) read(first);
      store_pieces(place_, all_.y + row * place_.columns, all_.streamed, first, [&](int k) {
        float x[S::kWide], w[S::kWide], b[S::kWide]{}, results[S::kWide];
        kept.piece(k, x);
        weight_.widen_piece(k - first, w);
        if constexpr (kCentered) bias_.widen_piece(k - first, b);
#pragma unroll
        for (int i = 0; i < S::kWide; ++i) {
          // Distances to an element are small: to subtract after the product loses nothing.
          const float normed = LaneRow<S, kCentered>::kShifted ? x[i] * scale - apart * scale
                                                               : (kCentered ? x[i] - apart : x[i]) * scale;
          results[i] = kCentered ? normed * w[i] + b[i] : normed * w[i];
        }
        return words_of<T>(results);
      });
    }
  }

 private:
  __device__ void read(int first) {
    weight_.read(place_, all_.weight, 1, first);
    if constexpr (kCentered) bias_.read(place_, all_.bias, 0, first);
  }

  const TeamPlace<S>& place_;
  const NormPointers<T>& all_;
  KeptRow<S> weight_, bias_;
};

template <class S, bool kCentered>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    norm_of_teams(NormPointers<typename S::T> all, int64_t rows, int columns, float epsilon) {
  using R = RowSpread<S, kCentered>;
  using Row = LaneRow<S, kCentered>;
  __shared__ typename R::E exchange;
  exchange.open();
  wait_for_kernels_before();
  let_next_kernel_start();
  const TeamPlace<S> place(columns);
  TeamRows<S> source(place, all.x, rows);
  NormedRows<S, kCentered> results(place, all);
  const float of_all = 1 / static_cast<float>(columns);
  R spread(place, exchange);
  exchange.wait_until_open();
  const auto begin = [&](Row& kept, int64_t row, uint32_t n) {
    kept.take(place, source, row);
    return spread.find(kept, n);
  };
  const auto end = [&](Row& kept, int64_t row, uint32_t n, Spread s) {
    results.prepare();
    if constexpr (S::kShares > 1) s = spread.join(n, of_all);
    const float square = s.squares * of_all + epsilon;
    results.store(kept, row, s.mean, S::kExact ? 1 / sqrtf(square) : fast_inverse_root(square));
  };
  int64_t row = place.first;
  if (row >= rows) return;
  Row kept;
  Spread s = begin(kept, row, 0);
  if constexpr (S::kDepth == 0) {
    end(kept, row, 0, s);
  } else {
    for (uint32_t n = 0; row < rows; row += place.stride, ++n) {
      const int64_t next = row + place.stride;
      Row later;
      if constexpr (!S::kOverlaps) end(kept, row, n, s);
      if (next < rows) s = begin(later, next, n + 1);
      if constexpr (S::kOverlaps) end(kept, row, n, s);
      kept = later;
    }
  }
}

/// f(Team*) with the team for rows of so many columns; false where there is none.
template <class T, class F>
bool with_norm_team(int64_t columns, F f) {
  const auto fits = [&]<class S>(S*) {
    return columns <= S::kMostColumns && (f(static_cast<S*>(nullptr)), true);
  };
  return fits(static_cast<Team<T, 1, 1, 0, 3, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 2, 1, 0, 12>*>(nullptr)) ||
         fits(static_cast<Team<T, 4, 1, 0, 6>*>(nullptr)) ||
         fits(static_cast<Team<T, 8, 1, 0, 3>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, 1, 0, 2>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, 1, 0, 2, 1, 8>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, cluster_of<4>, 3, 1>*>(nullptr)) ||
         fits(static_cast<Team<T, 16, cluster_of<8>, 3, 1>*>(nullptr));
}

}  // namespace weft::cuda

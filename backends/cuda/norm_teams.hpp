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

/// The spread of a warp's elements of a row; without a mean, the squares are about 0.
template <class S, bool kCentered, class P>
__device__ Spread spread_of_warp(const TeamPlace<S>& place, P (&kept)[S::kKept], float of_own) {
  const auto sum = [&](auto f) {  // four chains of additions are shorter than one
    float sums[4]{};
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      if (!place.has(k)) continue;
      if constexpr (S::kPacked) keep_in_registers(kept[k]);
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) sums[i % 4] += f(widened(kept[k].of[i]));
    }
    return sum_of<kWarp>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  };
  float mean = 0;
  if constexpr (kCentered) mean = sum([](float v) { return v; }) * of_own;
  return {mean, sum([&](float v) { return (v - mean) * (v - mean); })};
}

/// The spread of a row. The squares about a mean of all are those about the means of shares, and those of the
/// shares' distances (Chan, Golub and LeVeque, 1983): as exact as a second pass.
template <class S, bool kCentered>
class RowSpread {
 public:
  using E = Exchange<S::kShares, S::kCluster>;
  static constexpr int kEach = (S::kShares + kWarp - 1) / kWarp;  // shares that a lane joins

  __device__ RowSpread(const TeamPlace<S>& place, E& exchange) : place_(place), exchange_(exchange) {
    if constexpr (kCentered)
#pragma unroll
      for (int j = 0; j < kEach; ++j) counts_[j] = has(j) ? static_cast<float>(place.count(share(j))) : 0;
  }
  __device__ Spread join(uint32_t n, float of_all) {
    exchange_.wait(n, threadIdx.x == 0);
    Spread of[kEach];
    float mean = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      of[j] = has(j) ? exchange_.read(n, share(j)) : Spread{0, 0};
      squares += of[j].squares;
      if constexpr (kCentered) mean += counts_[j] * of[j].mean;
    }
    if constexpr (kCentered) {
      mean = sum_of<kWarp>(mean) * of_all;
#pragma unroll
      for (int j = 0; j < kEach; ++j) squares += counts_[j] * (of[j].mean - mean) * (of[j].mean - mean);
    }
    return {mean, sum_of<kWarp>(squares)};
  }

 private:
  __device__ int share(int j) const { return place_.lane + j * kWarp; }
  __device__ bool has(int j) const { return S::kShares % kWarp == 0 || share(j) < S::kShares; }

  const TeamPlace<S>& place_;
  E& exchange_;
  float counts_[kEach];
};

template <class S, bool kCentered>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks)
    norm_of_teams(NormPointers<typename S::T> all, int64_t rows, int columns, float epsilon) {
  using P = typename TeamRows<S>::P;
  using E = Exchange<S::kShares, S::kCluster>;
  __shared__ E exchange;
  exchange.open();
  wait_for_kernels_before();
  let_next_kernel_start();
  const TeamPlace<S> place(columns);
  TeamRows<S> source(place, all.x, rows);
  KeptRow<S> weight, bias;
  const auto read_shared = [&] {
    weight.read(place, all.weight, 1);
    if constexpr (kCentered) bias.read(place, all.bias, 0);
  };
  if constexpr (!S::kLate) read_shared();
  const int own = place.count(place.share);
  const float of_own = own ? 1 / static_cast<float>(own) : 0, of_all = 1 / static_cast<float>(columns);
  RowSpread<S, kCentered> spread(place, exchange);
  exchange.wait_until_open();
  const auto take = [&](int64_t row, uint32_t n) {
    P kept[S::kKept];
    source.take(kept, row);
    Spread s = spread_of_warp<S, kCentered>(place, kept, of_own);
    if constexpr (S::kShares > 1) {
      exchange.send(n, place.share, place.lane, s);
      s = spread.join(n, of_all);
    }
    const float scale = 1 / sqrtf(s.squares * of_all + epsilon);
    if constexpr (S::kLate) read_shared();
#pragma unroll
    for (int k = 0; k < S::kKept; ++k) {
      if (!place.has(k)) continue;
      const P w = weight.piece(k);
      P b{};
      if constexpr (kCentered) b = bias.piece(k);
      if constexpr (S::kPacked) keep_in_registers(kept[k]);
      float results[S::kWide];
#pragma unroll
      for (int i = 0; i < S::kWide; ++i) {
        results[i] = (widened(kept[k].of[i]) - s.mean) * scale * widened(w.of[i]);
        if constexpr (kCentered) results[i] += widened(b.of[i]);
      }
      typename S::T* const to = all.y + row * columns + place.column(k);
      const P piece = narrowed_piece<typename S::T>(results);
      all.streamed ? store_streamed(to, piece) : void(*reinterpret_cast<P*>(to) = piece);
    }
  };
  if constexpr (S::kDepth == 0) {
    if (place.first < rows) take(place.first, 0);
  } else {
    uint32_t n = 0;
    for (int64_t row = place.first; row < rows; row += place.stride, ++n) take(row, n);
  }
}

}  // namespace weft::cuda

#pragma once
#include "matmul_task.hpp"

// Sums of the rows of a beside a product: a gradient of a weight is a product aᵀ b, and that of its bias the
// sum of the same a.
namespace weft::cuda::hopper {

template <Lies of_a, Lies of_b>
inline constexpr bool kSumsA = of_a == Lies::along_m && of_b == Lies::along_m;

/// Of a tile that lies along m. A warp takes 32 of its rows, a thread four of them and a quarter of each
/// slice's k.
template <class T>
class RowSums {
 public:
  __device__ explicit RowSums(bool wanted) : wanted_(wanted) {}

  /// A slice in shared memory, while it is multiplied.
  __device__ void add(const char* a) {
    if (!wanted_) return;
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kWarp, warp = thread / kWarp;
    const auto piece = static_cast<uint32_t>(4 * (warp % 2) + lane % 8 / 2);
    const char* const of_thread = a + warp / 2 * kBlockBytes + 8 * (lane % 2);
    float sums[4] = {};
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      // Neighbouring groups of lanes read other banks: swizzling moves rows that differ by 4 in other ways.
      const int k = 16 * (lane / 16) + 4 * (lane / 8 % 2) + i % 4 + 8 * (i / 4 % 2) + 32 * (i / 8);
      const uint2 x = *reinterpret_cast<const uint2*>(of_thread + swizzled(static_cast<uint32_t>(k), piece));
      const float2 low = unpacked_pair<T>(x.x), high = unpacked_pair<T>(x.y);
      sums[0] += low.x, sums[1] += low.y, sums[2] += high.x, sums[3] += high.y;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums_[i] += sums[i];
  }

  /// To the results, or to those of a share.
  __device__ void store(const MatmulTask& task, const TilePlace& place) {
    if (!wanted_) return;
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kWarp;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      for (int m = 8; m < kWarp; m *= 2) sums_[i] += shuffle_xor(sums_[i], m);
    if (lane >= 8) return;
    for (int i = 0; i < 4; ++i) {
      const int row = place.row * kTileRows + thread / kWarp * 32 + 4 * lane + i;
      if (row >= task.rows) return;
      if (task.a_shares)
        task.a_shares[int64_t{place.share} * task.rows + row] = sums_[i];
      else
        static_cast<T*>(task.a_sums)[row] = narrowed<T>(sums_[i]);
    }
  }

 private:
  bool wanted_;
  float sums_[4] = {};
};

}  // namespace weft::cuda::hopper

#pragma once
#include "matmul_task.hpp"

// Sums of the rows of a beside a product: a gradient of a weight is a product aᵀ b, and that of its bias the
// sum of the same a.
namespace weft::cuda::hopper {

template <Lies of_a, Lies of_b>
inline constexpr bool kSumsA = of_a == Lies::along_m && of_b == Lies::along_m;

/// Of a tile that lies along m: a warp takes 32 of its rows, as products with columns of ones.
template <class T>
class RowSums {
 public:
  __device__ explicit RowSums(bool wanted) : wanted_(wanted) {}

  /// A slice in shared memory, while it is multiplied.
  __device__ void add(const char* a) {
    if (!wanted_) return;
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kWarp, warp = thread / kWarp;
    const int row = lane % 8 + 8 * (lane / 16);  // of k, in the four matrices of 16 x 16 elements
    const char* const block = a + warp / 2 * kBlockBytes;
#pragma unroll
    for (int k = 0; k < kSlice; k += 16)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t elements[4];
        load_matrices_transposed(
            elements, block + swizzled(static_cast<uint32_t>(k + row),
                                       static_cast<uint32_t>(4 * (warp % 2) + 2 * half + lane / 8 % 2)));
        multiply_add<T>(sums_[half], elements, {kOnes, kOnes});
      }
  }

  /// To the results, or to those of a share. All columns are alike.
  __device__ void store(const MatmulTask& task, const TilePlace& place) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kWarp;
    if (!wanted_ || lane % 4 != 0) return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = place.row * kTileRows + thread / kWarp * 32 + 8 * i + lane / 4;
      if (row >= task.rows) return;
      const float sum = sums_[i / 2][2 * (i % 2)];
      if (task.a_shares)
        task.a_shares[int64_t{place.share} * task.rows + row] = sum;
      else
        static_cast<T*>(task.a_sums)[row] = narrowed<T>(sum);
    }
  }

 private:
  static constexpr uint32_t kOnes = std::is_same_v<T, bf16> ? 0x3f803f80 : 0x3c003c00;
  bool wanted_;
  float sums_[2][4] = {};
};

}  // namespace weft::cuda::hopper

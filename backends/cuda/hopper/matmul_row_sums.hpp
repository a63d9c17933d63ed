#pragma once
#include "matmul_task.hpp"

// Sums of the rows of a beside a product: a gradient of a weight is a product aᵀ b, and that of its bias the
// sum of the same a. A slice that is summed takes about twice as long, so the tiles beside each other, which
// read the same slices of a, share them out.
namespace weft::cuda::hopper {

template <Lies of_a, Lies of_b>
inline constexpr bool kSumsA = of_a == Lies::along_m && of_b == Lies::along_m;

/// Of a tile that lies along m: a warp takes 32 of its rows, as products with columns of ones.
template <class T>
class RowSums {
 public:
  __device__ RowSums(const MatmulTask& task, const TilePlace& place)
      : next_(task.a_shares ? place.column : -1), step_(task.column_tiles) {}

  /// Slice i of this tile's in shared memory, while it is multiplied.
  __device__ void add(const char* a, int i) {
    if (i != next_) return;
    next_ += step_;
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

  /// All columns of the products are alike.
  __device__ void store(const MatmulTask& task, const TilePlace& place) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % kWarp;
    if (!task.a_shares || lane % 4 != 0) return;
    float* const to = task.a_shares + int64_t{place.share * task.column_tiles + place.column} * task.rows;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = place.row * kTileRows + thread / kWarp * 32 + 8 * i + lane / 4;
      if (row >= task.rows) return;
      to[row] = sums_[i / 2][2 * (i % 2)];
    }
  }

 private:
  static constexpr uint32_t kOnes = std::is_same_v<T, bf16> ? 0x3f803f80 : 0x3c003c00;
  int next_, step_;
  float sums_[2][4] = {};
};

}  // namespace weft::cuda::hopper

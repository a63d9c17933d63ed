#pragma once
#include "kernel.hpp"

// Attention of a query whose keys are split: what the warps of a block, the blocks of a cluster and the
// clusters have found is joined.
namespace weft::cuda::queries {

/// What was found out about a head: the largest score, the sum of exp2(score - largest), and as many
/// elements of the values weighted by these.
struct Found {
  float largest = -INFINITY, sum = 0;

  /// The factors of two partial sums in their union.
  __device__ float join(float other, float& factor) {
    const float most = fmaxf(largest, other), base = most == -INFINITY ? 0 : most;
    factor = exp2f(other - base);
    const float own = exp2f(largest - base);
    largest = most;
    return own;
  }
};

/// The average of what some parts found, as numerator; `all` has the rest. So many loads are under way at
/// once.
template <int kLoads, class LoadLargest, class LoadSum, class LoadColumn>
__device__ float joined(int parts, Found& all, LoadLargest largest, LoadSum sum, LoadColumn column) {
  for (int i = 0; i < parts; ++i) all.largest = fmaxf(all.largest, largest(i));
  const float base = all.largest == -INFINITY ? 0 : all.largest;
  float average = 0;
  for (int begin = 0; begin < parts; begin += kLoads) {
    float columns[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) columns[i] = begin + i < parts ? column(begin + i) : 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (begin + i >= parts) break;
      const float factor = exp2f(largest(begin + i) - base);
      all.sum += sum(begin + i) * factor;
      average += columns[i] * factor;
    }
  }
  return average;
}

/// What a block has of some heads of `kDim` elements at most, in shared memory.
template <int kHeads, int kDim>
struct BlockFound {
  float columns[kHeads][kDim], largest[kHeads], sums[kHeads];
};

}  // namespace weft::cuda::queries

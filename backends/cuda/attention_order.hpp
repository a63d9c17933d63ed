#pragma once
#include <algorithm>

#include "attention_call.hpp"

namespace weft::cuda {

/// The order in which blocks take tiles of all heads: each block takes every gridDim.x-th. Heads come in
/// batches that the cache holds, in one the longest tiles first, in the next one the shortest, in the last
/// one the longest: so lengths change little from tile to tile, and blocks get equal sums of them.
struct TileOrder {
  int tiles, heads, at_once;  ///< of a head; of the whole batch

  struct Place {
    int rank, head;  ///< rank 0: the longest tile of its head
  };
  __host__ __device__ int count() const { return tiles * heads; }
  __device__ Place place(int i) const {
    const int batch = i / (at_once * tiles), begin = batch * at_once, n = smaller(at_once, heads - begin),
              r = i - begin * tiles, rank = r / n, after = (heads - 1) / at_once - batch;
    return {after % 2 == 0 ? rank : tiles - 1 - rank, begin + r % n};
  }
  /// The n-th tile of this block, at least count() if there is none. Of an odd number of batches, blocks take
  /// every second row of tiles in reverse.
  __device__ int of_block(int n) const {
    const auto blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    const bool reversed = n % 2 == 1 && (heads - 1) / at_once % 2 == 0;
    return n * blocks + (reversed ? blocks - 1 - block : block);
  }
};

/// `bytes`: what the tiles of one head read again and again. Batches take about half of a cache of 50 MB.
inline TileOrder tile_order(int tiles, int64_t heads, int64_t bytes) {
  const int64_t fit = std::max<int64_t>(1, (int64_t{24} << 20) / std::max<int64_t>(1, bytes)),
                batches = std::max<int64_t>(1, (heads / fit + 1) / 2 * 2);
  return {tiles, static_cast<int>(heads), static_cast<int>((heads + batches - 1) / batches)};
}

}  // namespace weft::cuda

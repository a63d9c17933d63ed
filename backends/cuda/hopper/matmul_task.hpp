#pragma once
#include "../hopper.hpp"

// What a product is divided into: tiles of c, and shares and slices of k.
namespace weft::cuda::hopper {

inline constexpr int kSlice = 64;                 // of k
inline constexpr int kPart = 64, kParts = 2;      // rows of one product of a warpgroup; of a tile
inline constexpr int kTileRows = kPart * kParts;  // of c
inline constexpr int kConsumers = 2;              // warpgroups that multiply, a tile each
inline constexpr int kMatmulThreads = 128 * (1 + kConsumers);
inline constexpr uint32_t kBlockBytes = kPart * 64 * 2;  // of 64 x 64 elements
inline constexpr int kStoreBuffers = 2;                  // of each consumer, a block each

/// How wide tiles are, and how many slices of a and b the ring holds.
template <int columns, int stages>
struct Tiling {
  static constexpr int kColumns = columns, kStages = stages;
  static constexpr uint32_t kBytesOfA = kTileRows * kSlice * 2, kBytesOfB = kColumns * kSlice * 2,
                            kBytesOfStage = kBytesOfA + kBytesOfB;
};

template <class Tiles>
constexpr uint32_t shared_bytes() {
  return Tiles::kStages * (Tiles::kBytesOfStage + 2 * sizeof(Barrier)) +
         kConsumers * kStoreBuffers * kBlockBytes;
}

/// What a launch is told beside the maps of a, b and c, whose third axis is the batch.
struct MatmulTask {
  int rows = 0, columns = 0;  ///< of c
  int slices = 0;             ///< of k
  int row_tiles = 0, column_tiles = 0, batch = 1;
  int a_step = 0, b_step = 0;  ///< 1, or 0 where one matrix serves the whole batch
  const void* bias = nullptr;  ///< null, or one for each column
  const void* old = nullptr;   ///< null, or c, which is added to
  int shares = 1;              ///< of k, each a tile of its own, where there are few tiles
  int share_slices = 0;        ///< of each but the last
  float* sums = nullptr;       ///< where there are more shares than one: [shares, batch, rows, columns]

  __device__ int tiles() const { return row_tiles * column_tiles * batch * shares; }
};

/// A tile's place in c, in tiles, and its share of k.
struct TilePlace {
  int row, column, batch;
  int first_slice, end_slice;
};

/// Tiles are walked in groups of some rows, column by column, so that the blocks that run at once read few
/// different slices, which the L2 cache holds.
__device__ inline TilePlace place_of(const MatmulTask& task, int tile) {
  constexpr int kGroup = 16;
  const int of_matrix = task.row_tiles * task.column_tiles, matrix = tile / of_matrix, at = tile % of_matrix;
  const int first = at / (kGroup * task.column_tiles) * kGroup;
  const int rows = min(kGroup, task.row_tiles - first), in_group = at - first * task.column_tiles;
  const int slice = matrix / task.batch * task.share_slices;
  return {first + in_group % rows, in_group / rows, matrix % task.batch, slice,
          min(slice + task.share_slices, task.slices)};
}

}  // namespace weft::cuda::hopper

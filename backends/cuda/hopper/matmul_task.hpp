#pragma once
#include "../hopper.hpp"

// What a product is divided into: tiles of c, and shares and slices of k.
namespace weft::cuda::hopper {

inline constexpr int kSlice = 64;     // of k
inline constexpr int kPart = 64;      // rows of one product of a warpgroup
inline constexpr int kConsumers = 2;  // warpgroups that multiply
inline constexpr int kMatmulThreads = 128 * (1 + kConsumers);

/// Who multiplies a tile: both consumers, each half of its rows, or one, while the other stores its own.
enum class Work { together, in_turns };

/// How large tiles are and how they come.
template <int columns, int parts, int stages, int cluster, Work work>
struct Tiling {
  static constexpr int kColumns = columns;  ///< of a tile
  static constexpr int kParts = parts;      ///< of kPart rows for each consumer
  static constexpr int kStages = stages;
  static constexpr int kCluster = cluster;  ///< blocks that share b
  static constexpr bool kInTurns = work == Work::in_turns;
  static constexpr int kConsumersOfTile = kInTurns ? 1 : kConsumers;
  static constexpr int kRows = kConsumersOfTile * kPart * kParts;
  static constexpr uint32_t kBytesOfA = kRows * kSlice * 2, kBytesOfB = kColumns * kSlice * 2,
                            kBytesOfStage = kBytesOfA + kBytesOfB;
};

inline constexpr int kStoreBuffers = 2;                  // of each consumer
inline constexpr uint32_t kBlockBytes = kPart * 64 * 2;  // of 64 x 64 elements

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
  int group = 8;               ///< rows of tiles that are walked column by column, for the L2 cache
  const void* bias = nullptr;  ///< null, or one for each column
  const void* old = nullptr;   ///< null, or c, which is added to
  int shares = 1;              ///< of k, each a tile of its own, where there are few tiles
  int share_slices = 0;        ///< of each but the last
  float* sums = nullptr;       ///< where there are more shares: [shares, batch, rows, columns]
};

/// A tile's place in c, in tiles, and its share of k.
struct TilePlace {
  int row, column, batch, share;
};

/// The `unit`-th tile of a cluster's first block. Tiles are walked in groups of some rows, column by column,
/// so that the blocks that run at once read few different slices.
template <class Tiles>
__device__ TilePlace place_of(const MatmulTask& task, int unit) {
  const int unit_rows = (task.row_tiles + Tiles::kCluster - 1) / Tiles::kCluster;
  const int of_matrix = unit_rows * task.column_tiles, matrix = unit / of_matrix, at = unit % of_matrix;
  const int first = at / (task.group * task.column_tiles) * task.group;
  const int rows = min(task.group, unit_rows - first), in_group = at - first * task.column_tiles;
  return {(first + in_group % rows) * Tiles::kCluster, in_group / rows, matrix % task.batch,
          matrix / task.batch};
}
/// The slices of k of a tile's share.
struct Slices {
  int begin, end;
  __device__ Slices(const MatmulTask& task, const TilePlace& place)
      : begin(place.share * task.share_slices), end(min(begin + task.share_slices, task.slices)) {}
};
template <class Tiles>
__device__ int unit_count(const MatmulTask& task) {
  return (task.row_tiles + Tiles::kCluster - 1) / Tiles::kCluster * task.column_tiles * task.batch *
         task.shares;
}

}  // namespace weft::cuda::hopper

#pragma once
#include "../hopper.hpp"
#include "matmul_body.hpp"

// What a product is divided into: tiles of c, and shares and slices of k.
namespace weft::cuda::hopper {

inline constexpr int kSlice = 64;                 // of k
inline constexpr int kPart = 64, kParts = 2;      // rows of one product of a warpgroup; of a tile
inline constexpr int kTileRows = kPart * kParts;  // of c
inline constexpr int kConsumers = 2;              // warpgroups that multiply, a tile each
inline constexpr int kMatmulThreads = 128 * (1 + kConsumers);
inline constexpr uint32_t kBlockBytes = kPart * 64 * 2;  // of 64 x 64 elements

/// How wide tiles are, how many slices of a and b the ring holds, and how many blocks of c each consumer has
/// on their way.
template <int columns, int stages, int buffers>
struct Tiling {
  static constexpr int kColumns = columns, kStages = stages, kBuffers = buffers;
  static constexpr int kBlocks = kParts * columns / 64;  // of a tile
  static_assert(kBlocks % kBuffers == 0 && kBuffers >= 2, "each tile begins with the first buffer");
  static constexpr uint32_t kBytesOfA = kTileRows * kSlice * 2, kBytesOfB = kColumns * kSlice * 2,
                            kBytesOfStage = kBytesOfA + kBytesOfB;
};

/// What `packed` made one of.
template <class T>
__device__ float2 unpacked_pair(uint32_t pair) {
  return {widened(T{static_cast<uint16_t>(pair)}), widened(T{static_cast<uint16_t>(pair >> 16)})};
}

/// x, which the compiler does not know to be what it was: it computes anew what follows from it, and keeps
/// nothing of that in registers until then.
__device__ inline int anew(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// Tiles that a block has been given and its consumers have not come to.
inline constexpr int kTilesAhead = 4;

template <class Tiles>
constexpr uint32_t shared_bytes() {
  return Tiles::kStages * (Tiles::kBytesOfStage + 2 * sizeof(Barrier)) +
         kConsumers * Tiles::kBuffers * kBlockBytes + kTilesAhead * (2 * sizeof(Barrier) + sizeof(int));
}

struct MatmulMaps {
  CUtensorMap a, b;
  StoreMap c, other;  ///< of results that the TMA unit stores
};

/// What a launch is told beside the maps, whose third axis is the batch.
struct MatmulTask {
  int rows = 0, columns = 0;  ///< of c
  int slices = 0;             ///< of k
  int row_tiles = 0, column_tiles = 0, batch = 1;
  int a_step = 0, b_step = 0;  ///< 1, or 0 where one matrix serves the whole batch
  const void* bias = nullptr;  ///< null, or one for each column
  Ending ending = Ending::plain;
  void* c = nullptr;
  void* other = nullptr;    ///< what `Ending` names: an operand, or the second result
  int shares = 1;           ///< of k, each a tile of its own, where there are few tiles
  int share_slices = 0;     ///< of each but the last
  float* sums = nullptr;    ///< where there are more shares than one: [shares, batch, rows, columns]
  int* counters = nullptr;  ///< two that are 0 before and after: tiles taken, blocks that are done

  __device__ int tiles() const { return row_tiles * column_tiles * batch * shares; }
};

/// A tile's place in c, in tiles, and its share of k.
struct TilePlace {
  int row, column, batch;
  int share, first_slice, end_slice;
};

/// Tiles are walked in groups of some rows, column by column, so that the blocks that run at once read few
/// different slices, which the L2 cache holds.
__device__ inline TilePlace place_of(const MatmulTask& task, int tile) {
  constexpr int kGroup = 16;
  const int of_matrix = task.row_tiles * task.column_tiles, matrix = tile / of_matrix, at = tile % of_matrix;
  const int first = at / (kGroup * task.column_tiles) * kGroup;
  const int rows = min(kGroup, task.row_tiles - first), in_group = at - first * task.column_tiles;
  const int share = matrix / task.batch, slice = share * task.share_slices;
  return {first + in_group % rows,
          in_group / rows,
          matrix % task.batch,
          share,
          slice,
          min(slice + task.share_slices, task.slices)};
}

}  // namespace weft::cuda::hopper

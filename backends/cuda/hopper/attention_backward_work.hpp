#pragma once
#include <array>
#include <tuple>

#include "attention_parts.hpp"

// What the kernels of the gradients of attention for warpgroups are told.
namespace weft::cuda::hopper {

/// kParts: in how many 16-bit parts weights and their gradients are multiplied.
template <class T, int kDim, int kQueriesOfTile, int kPartsOfWeight, int kBuffersOfScores = 2>
struct Backward {
  using Element = T;
  static constexpr int kD = kDim, kQueries = kQueriesOfTile, kParts = kPartsOfWeight, kGroups = 2,
                       kKeys = kGroups * kGroupRows, kStages = kD == 64 ? 3 : 2, kBuffers = kBuffersOfScores,
                       kThreads = (kGroups + 1) * kGroupThreads;
  /// Tiles of keys: where shared memory suffices, the next one comes while dk and dv of the last one go.
  static constexpr int kTiles = kD == 128 && kParts == 2 ? 1 : 2;
  /// Whether dq goes to global memory by bulk copies, so that warps need not wait for their additions. What
  /// these copies read takes the room of a second tile of keys; with one part that costs more than it gains.
  static constexpr bool kAddsByCopies = kTiles == 1;
  /// Whether registers suffice for products of gradients while weights are made and multiplied.
  static constexpr bool kOverlaps = kParts == 1 || kD == 64;
  using KeyTile = Panels<kKeys, kD>;
  using QueryTile = Panels<kQueries, kD>;
  using ScoreTile = Panels<kKeys, kQueries>;
  static constexpr uint32_t kPieceBytes = 64 * 64 * sizeof(float);  ///< what a warpgroup makes of dq
  struct Barriers {
    Barrier kv_full[kTiles], kv_empty[kTiles], q_full[kStages], dy_full[kStages], empty[kStages];
  };
  struct Rows {
    float lse[kQueries], delta[kQueries];
  };
  struct Shared {
    char k[kTiles][KeyTile::kBytes], v[kTiles][KeyTile::kBytes];
    char q[kStages][QueryTile::kBytes], dy[kStages][QueryTile::kBytes];
    char ds[kBuffers][kParts][ScoreTile::kBytes];  ///< rows are keys, columns queries
    float4 dq[kAddsByCopies ? kGroups : 1]
             [kAddsByCopies ? kPieceBytes / sizeof(float4) : 1];  ///< unused otherwise
    Rows rows[kStages];
    Barriers barriers;
  };
  static constexpr size_t kShared = sizeof(Shared) + kTileAlignment;
  static_assert(kShared <= 227 * 1024);
  /// Of a tile of dq each warpgroup makes 64 x 64; where it has no more, they take turns.
  static constexpr int kPieces = kQueries * kD / (64 * 64);
  static constexpr bool kWhole = kPieces == kGroups;
  static_assert(kWhole || kPieces == 1);
};

struct BackwardMaps {
  CUtensorMap q, k, v, dy;
  StoreMap dk, dv;
};

/// The memory that kernels of one call share. Rows are padded to whole tiles of queries.
struct BackwardWork {
  AttentionSizes sizes;
  int q_tiles;
  TileOrder order;     ///< of tiles of keys
  float *lse, *delta;  ///< [heads, rows]: log2(e) lse, inf where a row sees nothing or is none; sum of y dy
  float4* dq;          ///< [heads, q_tiles, pieces, 8, 128]: four values of a thread together
  int* turns;          ///< [heads, q_tiles, pieces]: how many tiles of keys have added to it. Null: any order
};

/// `ordered`: dq is added up in the order of its keys, whatever runs beside it. Blocks then wait only for
/// those of tiles before theirs, which all run or have run, as long as tiles of a head come in their order.
template <class B>
BackwardWork backward_work(const AttentionSizes& s, float* workspace, bool ordered) {
  BackwardWork w{};
  w.sizes = s;
  w.q_tiles = (s.seq_q + B::kQueries - 1) / B::kQueries;
  w.order = tile_order((s.seq_k + B::kKeys - 1) / B::kKeys, s.heads / s.shared_by * s.batch,
                       int64_t{8} * s.seq_q * s.dim * s.shared_by);
  const int64_t rows = s.batch * s.heads * w.q_tiles * B::kQueries;
  w.dq = reinterpret_cast<float4*>(workspace);
  w.lse = workspace + rows * B::kD, w.delta = w.lse + rows;
  if (ordered) {
    w.turns = reinterpret_cast<int*>(w.delta + rows);
    w.order.at_once = w.order.heads;
  }
  return w;
}
template <class B>
int64_t backward_floats(const AttentionSizes& s) {
  const int64_t q_tiles = (s.seq_q + B::kQueries - 1) / B::kQueries;
  return s.batch * s.heads * q_tiles * (B::kQueries * (B::kD + 2) + B::kPieces);
}

template <class B>
Outcome backward_maps(BackwardMaps& m, cudaStream_t stream, DType type, const void* q, const void* k,
                      const void* v, const void* dy, void* dk, void* dv, const AttentionSizes& s) {
  const std::array<std::tuple<CUtensorMap*, const void*, bool>, 4> read{
      {{&m.q, q, false}, {&m.k, k, true}, {&m.v, v, true}, {&m.dy, dy, false}}};
  for (const auto& [map, at, of_keys] : read)
    if (auto made = map_of(*map, type, at, s, of_keys, kGroupRows); !made.good()) return made;
  if (auto made = map_of(m.dk, stream, type, dk, s, true); !made.good()) return made;
  return map_of(m.dv, stream, type, dv, s, true);
}

}  // namespace weft::cuda::hopper

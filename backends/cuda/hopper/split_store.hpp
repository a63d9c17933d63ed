#pragma once
#include "matmul_task.hpp"

// What a product of split f32 is told, how its stages lie, and the way from registers to c.
namespace weft::cuda::hopper {

inline constexpr int kSplitPanel = 32;  // f32 that are 128 bytes, which a copied row has
inline constexpr uint32_t kSplitBytesOfA = kTileRows * kSlice * sizeof(float);

/// Matrices of bf16 that are made of b. `finite` is `all`, with 0 for what is not finite.
enum class SplitPlane { all, finite, first, second };
inline constexpr int kSplitPlanes = 4;

template <int columns, int stages>
struct SplitTiling {
  static constexpr int kColumns = columns, kStages = stages;
  static constexpr int kBlocks = (columns + 63) / 64;  // of 64 columns, for b that lies along them
  static constexpr uint32_t kBytesOfPlane = kBlocks * kBlockBytes,
                            kBytesOfStage = kSplitBytesOfA + kSplitPlanes * kBytesOfPlane,
                            kShared = kStages * (kBytesOfStage + 2 * sizeof(Barrier));
};

/// The block's shared memory.
template <class Tiles>
struct SplitStages {
  char* tiles;  ///< of each stage a, then the planes of b
  Barrier *full, *empty;

  __device__ explicit SplitStages(char* shared) : tiles(shared) {
    full = reinterpret_cast<Barrier*>(shared + Tiles::kStages * Tiles::kBytesOfStage);
    empty = full + Tiles::kStages;
  }
  __device__ char* a(int stage) const { return tiles + stage * Tiles::kBytesOfStage; }
  __device__ char* b(int stage) const { return a(stage) + kSplitBytesOfA; }
  __device__ void init() const {
    for (int i = 0; i < Tiles::kStages; ++i) full[i].init(1), empty[i].init(4 * kConsumers);
    show_barriers();
  }
};

struct SplitTask : MatmulTask {
  float* c = nullptr;
  const float* onto = nullptr;  ///< null, or what is added to c
  int matrices_b = 1;           ///< of each plane
};

/// Stores 64 rows of a tile: c, with the bias and what is added, or the sums of a share.
template <class Tiles>
__device__ void store_split_tile(const float (&c)[Tiles::kColumns / 2], const SplitTask& task,
                                 const TilePlace& place) {
  const int thread = static_cast<int>(threadIdx.x) - 128;
  const int row = place.row * kTileRows + thread / kWarp * 16 + thread % kWarp / 4;
  const int column = place.column * Tiles::kColumns + 2 * (thread % 4);
  const int64_t share = task.sums ? place.share : 0;
  const int64_t matrix = (share * task.batch + place.batch) * int64_t{task.rows} * task.columns;
  float* const to = (task.sums ? task.sums : task.c) + matrix;
  const float* const old = task.onto ? task.onto + matrix : nullptr;
  const auto* const bias = static_cast<const float*>(task.bias);
  const bool pairs = task.columns % 2 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= task.rows) break;
#pragma unroll
    for (int j = 0; j < Tiles::kColumns / 8; ++j) {
      const int at_column = column + 8 * j;
      if (at_column >= task.columns) break;
      const bool two = at_column + 1 < task.columns;
      const int64_t at = int64_t{row + 8 * r} * task.columns + at_column;
      float x = c[4 * j + 2 * r], y = c[4 * j + 2 * r + 1];
      if (bias) x += bias[at_column], y += two ? bias[at_column + 1] : 0;
      if (pairs) {
        const float2 more = old ? *reinterpret_cast<const float2*>(old + at) : float2{0, 0};
        *reinterpret_cast<float2*>(to + at) = {x + more.x, y + more.y};
        continue;
      }
      to[at] = x + (old ? old[at] : 0);
      if (two) to[at + 1] = y + (old ? old[at + 1] : 0);
    }
  }
}

/// Adds up the sums of the shares, the bias and what is added: n neighbours in a row of c.
template <int n>
__global__ void __launch_bounds__(256)
    add_split_shares(const float* sums, float* c, const float* bias, const float* old, int64_t elements,
                     int columns, int shares) {
  struct alignas(n * sizeof(float)) Piece {
    float x[n];
  };
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = (int64_t{blockIdx.x} * 256 + threadIdx.x) * n;
  if (at >= elements) return;
  Piece all{};
  const auto add = [&](const float* from) {
    const Piece more = *reinterpret_cast<const Piece*>(from);
    for (int i = 0; i < n; ++i) all.x[i] += more.x[i];
  };
#pragma unroll 8
  for (int i = 0; i < shares; ++i) add(sums + i * elements + at);
  if (bias) add(bias + at % columns);
  if (old) add(old + at);
  *reinterpret_cast<Piece*>(c + at) = all;
}

}  // namespace weft::cuda::hopper

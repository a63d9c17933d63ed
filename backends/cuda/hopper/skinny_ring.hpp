#pragma once
#include <algorithm>

#include "../hopper.hpp"
#include "../skinny_kernel.hpp"

// Products of 2 to 16 rows with weights on GPUs of architecture 9.0. A block takes tiles of 16 to 96 rows of
// the weights. One of its warps copies these into a ring of stages by the TMA unit, as far ahead as shared
// memory allows, others copy x, and eight multiply, in teams that take the stages in turn. There is one block
// a multiprocessor, so the ring is large: while the kernel before ends and its results become x, the memory
// goes on reading weights.
namespace weft::cuda::skinny {

constexpr int kMostMaps = 10;  // of a launch
// A tile is of one product or of kMostProducts, so rows are divided by a constant.
static_assert(kMostProducts == 2);

/// What the copies of an item need.
struct RingItem {
  const void* x;
  int first_tile, k;
  uint8_t products, rows;  // of x
  uint8_t maps[kMostProducts];
};
/// What all threads need.
struct RingHead {
  RingItem of[kMostItems];
  int tiles, n, stages, steps;  // steps: at most, of an item that has more than one
};
/// A launch.
struct Ring {
  RingHead head;
  bool early;
  CUtensorMap maps[kMostMaps];
  Item items[kMostItems];
};
static_assert(sizeof(Ring) <= 4096);  // a kernel's arguments

/// Sizes of what a block has: `kTiles` tiles of 16 rows of the weights, `kSumTiles` of 8 rows of x.
template <int kTiles, int kSumTiles>
struct RingShape {
  static constexpr int kRows = 16 * kTiles, kXRows = 8 * kSumTiles;
  static constexpr int kDepth = kTiles <= 2 ? 256 : 128;   // elements of a row in a stage
  static constexpr int kGroups = kTiles % 2 == 0 ? 2 : 1;  // of warps, which share a stage's rows
  static constexpr int kTeams = kWarps / kGroups;          // of warps, which have stages of their own
  static constexpr int kOwnTiles = kTiles / kGroups;       // of a warp
  static constexpr int kRowsTogether = 64;                 // elements in a tile of the TMA unit
  static constexpr int kColumn = kRows + 4;                // without conflicts of banks
  static constexpr uint32_t kWeightBytes = kRows * kDepth * 2, kXBytes = kXRows * kDepth * 2,
                            kStageBytes = kWeightBytes + kXBytes;
  static constexpr int kEach =  // elements that a thread runs a step for at a time
      std::min(3, (kXRows * kRows + kThreads - 1) / kThreads);
  static constexpr uint32_t kSumBytes = kTeams * kXRows * kColumn * sizeof(float);
  static constexpr int kPieces = kDepth * 2 / 16;          // of 16 bytes of a row in a stage
  static constexpr int kXThreads = 2 * kSumTiles * kWarp;  // that copy x
  static constexpr int kThreadsOfAll = kThreads + kWarp + kXThreads;
  static_assert(kWeightBytes % hopper::kTileAlignment == 0 && kXBytes % hopper::kTileAlignment == 0 &&
                kRows / kMostProducts % 8 == 0);

  static size_t shared_bytes(int stages, int steps) {
    return hopper::kTileAlignment + kSumBytes + kMostItems * sizeof(Item) +
           static_cast<size_t>(stages) * (kStageBytes + 2 * sizeof(hopper::Barrier)) +
           static_cast<size_t>(steps) * kEach * kThreads * sizeof(float);
  }
};

/// Where a block is: in a stage of the ring, and in a part of a tile. kOne: a launch is one product, and a
/// block has one tile of it. This saves 2 us a launch.
template <class Shape, bool kOne>
struct RingPlace {
  const RingHead& head;
  int tile = static_cast<int>(blockIdx.x);
  int item = 0, first_row = 0;           // of the tile
  int batch = 0, left = 0, batches = 0;  // of its depth
  int stage = 0;
  uint32_t phase = 0;

  __device__ explicit RingPlace(const RingHead& h) : head(h) { enter(); }
  __device__ bool there() const { return kOne ? left > 0 : tile < head.tiles; }
  __device__ const RingItem& of() const { return head.of[kOne ? 0 : item]; }
  __device__ int products() const { return kOne ? 1 : of().products; }
  __device__ int rows() const { return products() == 1 ? Shape::kRows : Shape::kRows / kMostProducts; }
  /// Goes to the next stage, and returns whether the tile has ended.
  __device__ bool advance() {
    if (++stage == head.stages) stage = 0, phase ^= 1;
    if (++batch == batches) batch = 0;
    if (--left > 0) return false;
    if constexpr (!kOne) tile += static_cast<int>(gridDim.x), enter();
    return true;
  }

 private:
  __device__ void enter() {
    if constexpr (!kOne) {
      if (!there()) return;
      while (item + 1 < head.n && head.of[item + 1].first_tile <= tile) ++item;
    }
    first_row = (tile - of().first_tile) * rows();
    left = batches = (of().k + Shape::kDepth - 1) / Shape::kDepth;
    batch = tile % batches;  // blocks that read the same part of x at the same time would wait for each other
  }
};

/// Arrives when all copies of this thread have ended (copy_async).
__device__ inline void arrive_after_copies(hopper::Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(hopper::shared_address(&barrier))
               : "memory");
}

/// Results of this thread's steps in shared memory: registers cannot be indexed dynamically.
template <int kEach>
struct RingValues {
  float* of;
  __device__ float& operator()(int step, int e) const { return of[(step * kEach + e) * kThreads]; }
};

/// The ring in shared memory, and what its warps do.
template <class T, int kTiles, int kSumTiles, bool kOne>
struct RingBlock {
  using Shape = RingShape<kTiles, kSumTiles>;
  using Place = RingPlace<Shape, kOne>;

  const Ring& ring;
  char* stages;
  float* sums;  // by team, row of x and row of the weights
  hopper::Barrier *full, *empty;
  Item* items;
  RingValues<Shape::kEach> values;

  __device__ explicit RingBlock(const Ring& r) : ring(r) {
    char* const raw = dynamic_shared<char>();
    const int n = ring.head.stages;
    stages = raw + (0u - hopper::shared_address(raw)) % hopper::kTileAlignment;
    sums = reinterpret_cast<float*>(stages + n * Shape::kStageBytes);
    items = reinterpret_cast<Item*>(reinterpret_cast<char*>(sums) + Shape::kSumBytes);
    full = reinterpret_cast<hopper::Barrier*>(items + kMostItems);
    empty = full + n;
    values = {reinterpret_cast<float*>(empty + n) + threadIdx.x};
  }
  /// By one thread; a sync follows.
  __device__ void init() const {
    for (int i = 0; i < ring.head.stages; ++i)
      full[i].init(1 + Shape::kXThreads), empty[i].init(kThreads / Shape::kTeams);
    hopper::show_barriers();
  }

  /// By one thread.
  __device__ void copy_weights() const {
    if (!ring.early) wait_for_kernels_before();
    for (Place place(ring.head); place.there(); place.advance()) {
      hopper::Barrier& barrier = full[place.stage];
      char* const to = stages + place.stage * Shape::kStageBytes;
      const int products = place.products(), rows = place.rows(),
                k = hopper::uniform(place.batch) * Shape::kDepth,
                first_row = hopper::uniform(place.first_row);
      empty[place.stage].wait(place.phase ^ 1);
      barrier.arrive_expecting(Shape::kWeightBytes);
#pragma unroll
      for (int p = 0; p < kMostProducts; ++p) {
        if (p >= products) break;
#pragma unroll
        for (int i = 0; i < Shape::kDepth / Shape::kRowsTogether; ++i)
          hopper::load_tile(to + (i * Shape::kRows + p * rows) * hopper::kSwizzledRow,
                            ring.maps[kOne ? 0 : place.of().maps[p]], barrier, k + i * Shape::kRowsTogether,
                            first_row);
      }
    }
  }
  /// By kXThreads of them. Rows of x that there are not stay as they are, and give sums that nobody reads.
  __device__ void copy_rows() const {
    const int thread = static_cast<int>(threadIdx.x) - kThreads - kWarp, piece = thread % Shape::kPieces;
    Place place(ring.head);
    wait_for_kernels_before();
    for (; place.there(); place.advance()) {
      const RingItem& item = place.of();
      const int k = place.batch * Shape::kDepth + 8 * piece;
      const T* const from = static_cast<const T*>(item.x) + (k < item.k ? k : 0);
      char* const to = stages + place.stage * Shape::kStageBytes + Shape::kWeightBytes +
                       piece / 8 * Shape::kXRows * hopper::kSwizzledRow;
      empty[place.stage].wait(place.phase ^ 1);
#pragma unroll 4
      for (int row = thread / Shape::kPieces; row < item.rows; row += Shape::kXThreads / Shape::kPieces)
        copy_async(to + hopper::swizzled(row, piece % 8), from + int64_t{row} * item.k, k < item.k);
      arrive_after_copies(full[place.stage]);
    }
  }

  /// What a warp does with each tile.
  __device__ void multiply() const {
    if constexpr (!kOne) keep_items();
    const int team = static_cast<int>(threadIdx.x) / kWarp / Shape::kGroups;
    Place place(ring.head);
    wait_for_kernels_before();
    while (place.there()) {
      const Item& item = kOne ? ring.items[0] : items[place.item];
      const int first_row = place.first_row;
      float own[Shape::kOwnTiles][kSumTiles][4] = {};
      for (bool ended = false; !ended; ended = place.advance()) {
        if (place.stage % Shape::kTeams != team) continue;
        full[place.stage].wait(place.phase);
        add(own, stages + place.stage * Shape::kStageBytes);
        empty[place.stage].arrive();  // each thread: racecheck does not see that one speaks for its warp
      }
      hopper::sync_threads(1, kThreads);  // the sums of the tile before have been read
      put(own);
      hopper::sync_threads(1, kThreads);
      join(item, first_row);
    }
  }
  /// Adds what the warps have of each element, and runs its steps.
  __device__ void join(const Item& item, int first_row) const {
    const int all = kOne ? 1 : item.products, columns = Shape::kRows / all;
    const bool plain = all == 1 && item.n_steps == 1 && item.n_results == 1;
    for (int first = 0; first < item.rows * columns; first += Shape::kEach * kThreads) {
      StepElement of[Shape::kEach];
#pragma unroll
      for (int e = 0; e < Shape::kEach; ++e) {
        const int at = first + e * kThreads + static_cast<int>(threadIdx.x),
                  row = all == 1 ? at / Shape::kRows : at / (Shape::kRows / kMostProducts),
                  column = at - row * columns;
        of[e] = {row < item.rows && first_row + column < item.n, row, first_row + column, {}};
        if (!of[e].there) continue;
        add_parts(all, row, column, of[e].products);
        if (plain)
          stored(item.results[0], item.result_formats[0], int64_t{row} * item.n + first_row + column,
                 rounded(of[e].products[0], item.steps[0].rounded_to));
      }
      if (!plain) run_steps(item, of, values);
    }
  }

 private:
  __device__ void add_parts(int all, int row, int column, float (&products)[kMostProducts]) const {
#pragma unroll
    for (int p = 0; p < kMostProducts; ++p) {
      if (p >= all) break;
      const float* const own = sums + row * Shape::kColumn + p * Shape::kRows / kMostProducts + column;
#pragma unroll
      for (int i = 0; i < Shape::kTeams; ++i) products[p] += own[i * Shape::kXRows * Shape::kColumn];
    }
  }

  /// The items in shared memory, for the steps at the end of a tile.
  __device__ void keep_items() const {
    const auto* const from = reinterpret_cast<const uint32_t*>(ring.items);
    const int words = ring.head.n * static_cast<int>(sizeof(Item) / sizeof(uint32_t));
    for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads)
      reinterpret_cast<uint32_t*>(items)[i] = from[i];
  }

  /// Products of this warp's rows of a stage.
  __device__ void add(float (&own)[Shape::kOwnTiles][kSumTiles][4], const char* stage) const {
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32,
                   first_row = warp % Shape::kGroups * Shape::kOwnTiles * 16 + lane % 16;
    const char* const x = stage + Shape::kWeightBytes;
    uint32_t b[4];  // of two steps, or of two tiles of x
#pragma unroll
    for (uint32_t step = 0; step < Shape::kDepth / 16; ++step) {
      const uint32_t tile = step / 4, piece = step % 4 * 2;
      const char* const x_tile = x + tile * Shape::kXRows * hopper::kSwizzledRow;
      if constexpr (kSumTiles == 2)
        load_matrices(b, x_tile + hopper::swizzled(lane % 8 + lane / 16 * 8, piece + lane / 8 % 2));
      else if (step % 2 == 0)
        load_matrices(b, x_tile + hopper::swizzled(lane % 8, piece + lane / 8));
#pragma unroll
      for (uint32_t r = 0; r < Shape::kOwnTiles; ++r) {
        uint32_t a[4];
        load_matrices(a, stage + tile * Shape::kRows * hopper::kSwizzledRow +
                             hopper::swizzled(first_row + r * 16, piece + lane / 16));
#pragma unroll
        for (int s = 0; s < kSumTiles; ++s) {
          const int i = kSumTiles == 2 ? 2 * s : step % 2 * 2;
          multiply_add<T>(own[r][s], a, {b[i], b[i + 1]});
        }
      }
    }
  }
  __device__ void put(const float (&own)[Shape::kOwnTiles][kSumTiles][4]) const {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32,
              group = warp % Shape::kGroups, team = warp / Shape::kGroups;
#pragma unroll
    for (int r = 0; r < Shape::kOwnTiles; ++r)
#pragma unroll
      for (int s = 0; s < kSumTiles; ++s)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const int row = (group * Shape::kOwnTiles + r) * 16 + lane / 4 + c / 2 * 8,
                    x_row = 8 * s + lane % 4 * 2 + c % 2;
          sums[(team * Shape::kXRows + x_row) * Shape::kColumn + row] = own[r][s][c];
        }
  }
};

template <class T, int kTiles, int kSumTiles, bool kOne>
__global__ void __launch_bounds__(RingShape<kTiles, kSumTiles>::kThreadsOfAll, 1)
    multiply_ring(const __grid_constant__ Ring ring) {
  using Shape = RingShape<kTiles, kSumTiles>;
  let_next_kernel_start();
  const RingBlock<T, kTiles, kSumTiles, kOne> block(ring);
  constexpr int kBegun = 2;  // the barrier behind which the ring is there; who copies weights need not wait
  if (threadIdx.x / kWarp == kThreads / kWarp) {
    if (threadIdx.x == kThreads) block.init();
    sync_warp();
    hopper::arrive_threads(kBegun, Shape::kThreadsOfAll);
    if (threadIdx.x == kThreads) block.copy_weights();
    return;
  }
  hopper::sync_threads(kBegun, Shape::kThreadsOfAll);
  if (threadIdx.x < kThreads)
    block.multiply();
  else
    block.copy_rows();
}

}  // namespace weft::cuda::skinny

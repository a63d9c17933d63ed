#pragma once
#include "matmul_store.hpp"

// A product of 16-bit matrices, added up in f32: c = a b, c = a b + bias or c += a b. A block stays on its
// multiprocessor and takes tile after tile of c. One of its threads copies slices of a and b, 64 of k wide,
// into a ring of stages; two warpgroups multiply them, 64 rows of the tile or twice as many each, and store
// the tile while the ring fills with slices of the next one. Two blocks that share columns of c can form a
// cluster, and copy half of b's slice each for both. (The division of work is that of CUTLASS's persistent
// kernels for Hopper.)
namespace weft::cuda::hopper {

/// The block's shared memory.
template <class Tiles>
struct Stages {
  char* tiles;  ///< of each stage a, then b; then the buffers of stores
  Barrier *full, *empty;

  __device__ explicit Stages(char* shared) : tiles(shared) {
    full = reinterpret_cast<Barrier*>(shared + Tiles::kStages * Tiles::kBytesOfStage +
                                      kConsumers * kStoreBuffers * kBlockBytes);
    empty = full + Tiles::kStages;
  }
  __device__ char* a(int stage) const { return tiles + stage * Tiles::kBytesOfStage; }
  __device__ char* b(int stage) const { return a(stage) + Tiles::kBytesOfA; }
  __device__ char* buffers(int consumer) const {
    return tiles + Tiles::kStages * Tiles::kBytesOfStage + consumer * kStoreBuffers * kBlockBytes;
  }
  __device__ void init() const {
    for (int i = 0; i < Tiles::kStages; ++i) {
      full[i].init(1);
      empty[i].init(Tiles::kConsumersOfTile * 4 * Tiles::kCluster);  // their warps
    }
    show_barriers();
  }
};

/// A stage of the ring, and the phase that its barriers are in.
template <int kStages>
struct RingPlace {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == kStages) stage = 0, phase ^= 1;
  }
  __device__ void skip(int n) {
    phase ^= (stage + n) / kStages & 1;
    stage = (stage + n) % kStages;
  }
};

/// Copies this block's slice of a.
template <class Tiles, Lies of_a>
__device__ void load_a(char* to, const CUtensorMap& a, Barrier& full, int row, int k, int batch) {
  if constexpr (of_a == Lies::along_k) {
    load_tile(to, a, full, k, row, batch);
  } else {
    for (int m = 0; m < Tiles::kRows; m += 64) load_tile(to + m * kSlice * 2, a, full, row + m, k, batch);
  }
}

/// Copies the slice of b, or for all blocks of the cluster the part that is this block's: some columns, or
/// some of k.
template <class Tiles, Lies of_b>
__device__ void load_b(char* to, const CUtensorMap& b, Barrier& full, int rank, int column, int k,
                       int batch) {
  const auto copy = [&](char* tile, int x, int y) {
    if constexpr (Tiles::kCluster > 1)
      load_tile_for((1 << Tiles::kCluster) - 1, tile, b, full, x, y, batch);
    else
      load_tile(tile, b, full, x, y, batch);
  };
  constexpr int kSize = of_b == Lies::along_k ? Tiles::kColumns : kSlice, kShare = kSize / Tiles::kCluster;
  const int first = rank * kShare;
  to += first * kSwizzledRow;
  if constexpr (of_b == Lies::along_k) {
    copy(to, k, column + first);
  } else {
    for (int n = 0; n < Tiles::kColumns; n += 64) copy(to + n * kSlice * 2, column + n, k + first);
  }
}

/// Copies the slices of all tiles of this block. By one thread.
template <class Tiles, Lies of_a, Lies of_b>
__device__ void load_slices(const Stages<Tiles>& stages, const CUtensorMap& a, const CUtensorMap& b,
                            const MatmulTask& task) {
  const int rank = Tiles::kCluster > 1 ? static_cast<int>(block_of_cluster()) : 0;
  RingPlace<Tiles::kStages> ring;
  for (int unit = blockIdx.x / Tiles::kCluster; unit < unit_count<Tiles>(task);
       unit += gridDim.x / Tiles::kCluster) {
    const TilePlace place = place_of<Tiles>(task, unit);
    const int row = (place.row + rank) * Tiles::kRows, column = place.column * Tiles::kColumns;
    const Slices slices(task, place);
    for (int i = slices.begin; i < slices.end; ++i, ring.next()) {
      Barrier& full = stages.full[ring.stage];
      stages.empty[ring.stage].wait(ring.phase ^ 1);
      full.arrive_expecting(Tiles::kBytesOfStage);
      load_a<Tiles, of_a>(stages.a(ring.stage), a, full, row, i * kSlice, place.batch * task.a_step);
      load_b<Tiles, of_b>(stages.b(ring.stage), b, full, rank, column, i * kSlice, place.batch * task.b_step);
    }
  }
}

/// Says that this warp has read a stage.
template <class Tiles>
__device__ void release_stage(Barrier& empty) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if constexpr (Tiles::kCluster > 1) {
    if (lane < Tiles::kCluster) empty.arrive_at(static_cast<uint32_t>(lane));
  } else {
    if (lane == 0) empty.arrive();
  }
}

/// Multiplies the slices of one tile: the `of_tile`-th consumer's rows. All its stages are released at the
/// end. Calls `after_last` when the last slice has come and its products are begun.
template <class T, class Tiles, Lies of_a, Lies of_b, class After>
__device__ void multiply_tile(float (&c)[Tiles::kParts][Tiles::kColumns / 2], const Stages<Tiles>& stages,
                              RingPlace<Tiles::kStages>& ring, int of_tile, int slices, After after_last) {
  int before = ring.stage;
  for (int i = 0; i < slices; ++i) {
    stages.full[ring.stage].wait(ring.phase);
    const char* const rows = stages.a(ring.stage) + of_tile * Tiles::kParts * kBlockBytes;
    const uint64_t b = operand_at<of_b>(stages.b(ring.stage), kBlockBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < kSlice / 16; ++k)
#pragma unroll
      for (int part = 0; part < Tiles::kParts; ++part)
        Product<T, Tiles::kColumns, of_a, of_b>::run(
            c[part], operand_at<of_a>(rows + part * kBlockBytes, kBlockBytes) + k * kNextSixteen<of_a>,
            b + k * kNextSixteen<of_b>, i > 0 || k > 0);
    end_of_products();
    if (i > 0) {
      wait_for_products<1>();
      release_stage<Tiles>(stages.empty[before]);
    }
    before = ring.stage;
    ring.next();
  }
  after_last();
  wait_for_products<0>();
#pragma unroll
  for (int part = 0; part < Tiles::kParts; ++part) hold(c[part]);
  release_stage<Tiles>(stages.empty[before]);
}

/// Turns of the two consumers. A phase of a barrier is known by one bit, so a consumer must not wait for a
/// slice before the other has got all of its own.
class Turns {
 public:
  __device__ explicit Turns(int consumer) : consumer_(consumer) {
    if (consumer == 1) give();  // the first one begins
  }
  __device__ void take() const { sync_threads(kFirst + consumer_, kBoth); }
  __device__ void give() const { arrive_threads(kFirst + 1 - consumer_, kBoth); }

 private:
  static constexpr int kFirst = 1 + kConsumers, kBoth = 2 * 128;  // other barriers come before
  int consumer_;
};

/// Multiplies and stores this consumer's part of the block's tiles.
template <class T, class Tiles, Lies of_a, Lies of_b>
__device__ void multiply_tiles(const Stages<Tiles>& stages, const CUtensorMap& c, const MatmulTask& task) {
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1, of_tile = Tiles::kInTurns ? 0 : consumer;
  const int rank = Tiles::kCluster > 1 ? static_cast<int>(block_of_cluster()) : 0;
  const int units = unit_count<Tiles>(task), step = static_cast<int>(gridDim.x) / Tiles::kCluster;
  RingPlace<Tiles::kStages> ring;
  const Turns turns(Tiles::kInTurns ? consumer : 0);
  bool mine = !Tiles::kInTurns || consumer == 0;
  for (int unit = blockIdx.x / Tiles::kCluster; unit < units; unit += step) {
    const TilePlace place = place_of<Tiles>(task, unit);
    const Slices slices(task, place);
    if (mine) {
      float results[Tiles::kParts][Tiles::kColumns / 2];
      if (Tiles::kInTurns) turns.take();
      multiply_tile<T, Tiles, of_a, of_b>(results, stages, ring, of_tile, slices.end - slices.begin, [&] {
        if (Tiles::kInTurns && unit + step < units) turns.give();
      });
      const int row = (place.row + rank) * Tiles::kRows + of_tile * Tiles::kParts * kPart;
      if (task.sums)
        store_sums<Tiles>(results, task, row, place);
      else
        store_results<T, Tiles>(results, c, stages.buffers(consumer), task, row, place, consumer);
    } else {
      ring.skip(slices.end - slices.begin);
    }
    if (Tiles::kInTurns) mine = !mine;
  }
  if (threadIdx.x % 128 == 0) wait_until_stored<0>();
}

template <class T, class Tiles, Lies of_a, Lies of_b>
__global__ void __cluster_dims__(Tiles::kCluster, 1, 1) __launch_bounds__(kMatmulThreads, 1)
    matmul_tiles(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                 const __grid_constant__ CUtensorMap c, const __grid_constant__ MatmulTask task) {
  extern __shared__ __align__(1024) char matmul_shared[];
  const Stages<Tiles> stages(matmul_shared);
  if (threadIdx.x == 0) {
    prefetch(a), prefetch(b), prefetch(c);
    stages.init();
  }
  if constexpr (Tiles::kCluster > 1)
    sync_cluster();
  else
    sync_block();
  wait_for_kernels_before();
  let_next_kernel_start();
  // 168 registers for each thread become 24 for those that copy and 240 for those that multiply.
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) load_slices<Tiles, of_a, of_b>(stages, a, b, task);
    sync_warp();
  } else {
    take_registers<240>();
    multiply_tiles<T, Tiles, of_a, of_b>(stages, c, task);
  }
  if constexpr (Tiles::kCluster > 1) sync_cluster();  // the other block copies to this one's memory
}

}  // namespace weft::cuda::hopper

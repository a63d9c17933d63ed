#pragma once
#include "../hopper.hpp"

// A product of 16-bit matrices, added up in f32: c = a b, c = a b + bias or c += a b. A block stays on its
// multiprocessor and takes tile after tile of c. One of its threads copies slices of a and b, 64 of k wide,
// into a ring of stages; two warpgroups multiply them, 64 rows of the tile or twice as many each, and store
// the tile while the ring fills with slices of the next one. Two blocks that share columns of c can form a
// cluster, and copy half of b's slice each for both. (The division of work is that of CUTLASS's persistent
// kernels for Hopper.)
namespace weft::cuda::hopper {

inline constexpr int kSlice = 64;     // of k
inline constexpr int kPart = 64;      // rows of one product of a warpgroup
inline constexpr int kConsumers = 2;  // warpgroups that multiply
inline constexpr int kMatmulThreads = 128 * (1 + kConsumers);

/// How large tiles are and how they come.
template <int columns, int parts, int stages, int cluster>
struct Tiling {
  static constexpr int kColumns = columns;  ///< of a tile
  static constexpr int kParts = parts;      ///< of kPart rows for each consumer
  static constexpr int kStages = stages;
  static constexpr int kCluster = cluster;  ///< blocks that share b
  static constexpr int kRows = kConsumers * kPart * kParts;
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
};

/// A place in c, in tiles.
struct TilePlace {
  int row, column, batch;
};

/// The `unit`-th tile of a cluster's first block. Tiles are walked in groups of some rows, column by column,
/// so that the blocks that run at once read few different slices.
template <class Tiles>
__device__ TilePlace place_of(const MatmulTask& task, int unit) {
  const int unit_rows = (task.row_tiles + Tiles::kCluster - 1) / Tiles::kCluster;
  const int of_matrix = unit_rows * task.column_tiles, batch = unit / of_matrix, at = unit % of_matrix;
  const int first = at / (task.group * task.column_tiles) * task.group;
  const int rows = min(task.group, unit_rows - first), in_group = at - first * task.column_tiles;
  return {(first + in_group % rows) * Tiles::kCluster, in_group / rows, batch};
}
template <class Tiles>
__device__ int unit_count(const MatmulTask& task) {
  return (task.row_tiles + Tiles::kCluster - 1) / Tiles::kCluster * task.column_tiles * task.batch;
}

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
      empty[i].init(kConsumers * 4 * Tiles::kCluster);  // a warp of each
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
};

/// Copies the slices of all tiles of this block. By one thread.
template <class Tiles, Lies of_a, Lies of_b>
__device__ void load_slices(const Stages<Tiles>& stages, const CUtensorMap& a, const CUtensorMap& b,
                            const MatmulTask& task) {
  constexpr int kShare = Tiles::kColumns / Tiles::kCluster;  // columns of b that this block copies
  const int rank = Tiles::kCluster > 1 ? static_cast<int>(block_of_cluster()) : 0;
  const auto copy_b = [&](char* to, Barrier& barrier, int x, int y, int z) {
    if constexpr (Tiles::kCluster > 1)
      load_tile_for((1 << Tiles::kCluster) - 1, to, b, barrier, x, y, z);
    else
      load_tile(to, b, barrier, x, y, z);
  };
  RingPlace<Tiles::kStages> ring;
  for (int unit = blockIdx.x / Tiles::kCluster; unit < unit_count<Tiles>(task);
       unit += gridDim.x / Tiles::kCluster) {
    const TilePlace place = place_of<Tiles>(task, unit);
    const int row = (place.row + rank) * Tiles::kRows,
              column = place.column * Tiles::kColumns + rank * kShare;
    const int a_batch = place.batch * task.a_step, b_batch = place.batch * task.b_step;
    for (int i = 0; i < task.slices; ++i, ring.next()) {
      Barrier& full = stages.full[ring.stage];
      stages.empty[ring.stage].wait(ring.phase ^ 1);
      full.arrive_expecting(Tiles::kBytesOfStage);
      char *const to_a = stages.a(ring.stage), *const to_b =
                                                   stages.b(ring.stage) + rank * kShare * kSlice * 2;
      if constexpr (of_a == Lies::along_k) {
        load_tile(to_a, a, full, i * kSlice, row, a_batch);
      } else {
        for (int m = 0; m < Tiles::kRows; m += 64)
          load_tile(to_a + m * kSlice * 2, a, full, row + m, i * kSlice, a_batch);
      }
      if constexpr (of_b == Lies::along_k) {
        copy_b(to_b, full, i * kSlice, column, b_batch);
      } else {
        for (int n = 0; n < kShare; n += 64)
          copy_b(to_b + n * kSlice * 2, full, column + n, i * kSlice, b_batch);
      }
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

/// Multiplies the slices of one tile: this consumer's rows. All its stages are released at the end.
template <class T, class Tiles, Lies of_a, Lies of_b>
__device__ void multiply_tile(float (&c)[Tiles::kParts][Tiles::kColumns / 2], const Stages<Tiles>& stages,
                              RingPlace<Tiles::kStages>& ring, int consumer, int slices) {
  int before = ring.stage;
  for (int i = 0; i < slices; ++i) {
    stages.full[ring.stage].wait(ring.phase);
    const char* const rows = stages.a(ring.stage) + consumer * Tiles::kParts * kBlockBytes;
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
  wait_for_products<0>();
#pragma unroll
  for (int part = 0; part < Tiles::kParts; ++part) hold(c[part]);
  release_stage<Tiles>(stages.empty[before]);
}

template <class T>
__device__ uint32_t packed_pair(float low, float high) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <class T>
__device__ float2 unpacked_pair(uint32_t pair) {
  return {widened(T{static_cast<uint16_t>(pair)}), widened(T{static_cast<uint16_t>(pair >> 16)})};
}

/// Adds the bias, or what c holds, to 64 columns of results from `column` on: rows `row` and `row` + 8 of
/// this thread.
template <class T>
__device__ void add_to_results(float* c, const MatmulTask& task, int row, int column, int batch) {
  column += 2 * (static_cast<int>(threadIdx.x) % 4);
  const auto* const bias = static_cast<const uint16_t*>(task.bias);
  const auto* const old = static_cast<const uint16_t*>(task.old);
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int at = column + 8 * j;
    if (at >= task.columns) break;  // there are even numbers of columns
    if (bias) {
      const float2 x = unpacked_pair<T>(uint32_t{bias[at]} | uint32_t{bias[at + 1]} << 16);
      c[4 * j] += x.x, c[4 * j + 1] += x.y, c[4 * j + 2] += x.x, c[4 * j + 3] += x.y;
    }
    if (!old) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t of_row = int64_t{batch} * task.rows + row + 8 * half;
      if (row + 8 * half >= task.rows) break;
      const float2 x = unpacked_pair<T>(*reinterpret_cast<const uint32_t*>(old + of_row * task.columns + at));
      c[4 * j + 2 * half] += x.x, c[4 * j + 2 * half + 1] += x.y;
    }
  }
}

/// Stores this consumer's rows of a tile, 64 x 64 elements at a time, by way of its two buffers.
template <class T, class Tiles>
__device__ void store_results(float (&c)[Tiles::kParts][Tiles::kColumns / 2], const CUtensorMap& to,
                              char* buffers, const MatmulTask& task, int row, int column, int batch,
                              int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / kWarp, lane = thread % kWarp;
  const int of_matrix = 16 * warp + lane % 8 + 8 * (lane / 8 % 2), half = lane / 16;
#pragma unroll
  for (int part = 0; part < Tiles::kParts; ++part) {
    const int first = row + part * kPart;
#pragma unroll
    for (int n = 0; n < Tiles::kColumns / 64; ++n) {
      char* const buffer = buffers + n % kStoreBuffers * kBlockBytes;
      float* const results = c[part] + 32 * n;
      if (task.bias || task.old)
        add_to_results<T>(results, task, first + 16 * warp + lane / 4, column + 64 * n, batch);
      if (thread == 0) wait_until_read<kStoreBuffers - 1>();
      sync_threads(1 + consumer, 128);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        store_matrices(
            buffer + swizzled(static_cast<uint32_t>(of_matrix), static_cast<uint32_t>(2 * j + half)),
            packed_pair<T>(results[8 * j], results[8 * j + 1]),
            packed_pair<T>(results[8 * j + 2], results[8 * j + 3]),
            packed_pair<T>(results[8 * j + 4], results[8 * j + 5]),
            packed_pair<T>(results[8 * j + 6], results[8 * j + 7]));
      show_shared_writes();
      sync_threads(1 + consumer, 128);
      if (thread == 0) {
        store_tile(to, buffer, column + 64 * n, first, batch);
        end_of_stores();
      }
    }
  }
}

template <class T, class Tiles, Lies of_a, Lies of_b>
__device__ void multiply_tiles(const Stages<Tiles>& stages, const CUtensorMap& c, const MatmulTask& task) {
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
  const int rank = Tiles::kCluster > 1 ? static_cast<int>(block_of_cluster()) : 0;
  RingPlace<Tiles::kStages> ring;
  for (int unit = blockIdx.x / Tiles::kCluster; unit < unit_count<Tiles>(task);
       unit += gridDim.x / Tiles::kCluster) {
    float results[Tiles::kParts][Tiles::kColumns / 2];
    multiply_tile<T, Tiles, of_a, of_b>(results, stages, ring, consumer, task.slices);
    const TilePlace place = place_of<Tiles>(task, unit);
    const int row = (place.row + rank) * Tiles::kRows + consumer * Tiles::kParts * kPart;
    store_results<T, Tiles>(results, c, stages.buffers(consumer), task, row, place.column * Tiles::kColumns,
                            place.batch, consumer);
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
  // 168 registers for each thread become 40 for those that copy and 232 for those that multiply.
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load_slices<Tiles, of_a, of_b>(stages, a, b, task);
    sync_warp();
  } else {
    take_registers<232>();
    multiply_tiles<T, Tiles, of_a, of_b>(stages, c, task);
  }
  if constexpr (Tiles::kCluster > 1) sync_cluster();  // the other block copies to this one's memory
}

}  // namespace weft::cuda::hopper

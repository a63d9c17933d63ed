#pragma once
#include "matmul_store.hpp"

// A product of 16-bit matrices, added up in f32: c = a b + bias, and what `Ending` names. A block stays on
// its multiprocessor and takes tile after tile of c. One of its threads copies slices of a and b, 64 of k
// wide, into a ring of stages, and two warpgroups take turns: while one multiplies a tile, the other stores
// the one before it. (Such kernels are known from CUTLASS, which calls them persistent, warp-specialized and
// "pingpong".)
namespace weft::cuda::hopper {

/// The block's shared memory: of each stage a, then b; the consumers' buffers; barriers.
template <class Tiles>
struct Stages {
  char* tiles;
  Barrier *full, *empty;
  TileNumbers numbers;

  __device__ explicit Stages(char* shared)
      : tiles(shared),
        full(reinterpret_cast<Barrier*>(buffers(kConsumers))),
        empty(full + Tiles::kStages),
        numbers(reinterpret_cast<char*>(empty + Tiles::kStages)) {}
  __device__ char* a(int stage) const { return tiles + stage * Tiles::kBytesOfStage; }
  __device__ char* b(int stage) const { return a(stage) + Tiles::kBytesOfA; }
  __device__ char* buffers(int consumer) const {
    return a(Tiles::kStages) + consumer * Tiles::kBuffers * kBlockBytes;
  }
  __device__ void init() const {
    for (int i = 0; i < Tiles::kStages; ++i) {
      full[i].init(1);
      empty[i].init(4);  // the warps of a consumer
    }
    numbers.init();
    show_barriers();
  }
};

/// Copies a slice of as many rows of a, or columns of b, as a tile has. `at` is the first of them.
template <Lies lies>
__device__ void load_slice(char* to, const CUtensorMap& map, Barrier& full, int size, int at, int k,
                           int batch) {
  if constexpr (lies == Lies::along_k) {
    load_tile(to, map, full, k, at, batch);
  } else {
    for (int m = 0; m < size; m += 64) load_tile(to + m * kSlice * 2, map, full, at + m, k, batch);
  }
}

/// Copies the slices of all tiles of this block, each of so many k. By one thread.
template <class Tiles, Lies of_a, Lies of_b, int slice_size = kSlice>
__device__ void load_slices(const Stages<Tiles>& stages, const CUtensorMap& a, const CUtensorMap& b,
                            const MatmulTask& task) {
  RingPlace<Tiles::kStages> ring;
  TileGiver tiles(stages.numbers, task);
  tiles.each([&](int tile) {
    const TilePlace place = place_of(task, tile);
    const int row = place.row * kTileRows, column = place.column * Tiles::kColumns;
    for (int i = place.first_slice; i < place.end_slice; ++i, ring.next()) {
      Barrier& full = stages.full[ring.stage];
      stages.empty[ring.stage].wait(ring.phase ^ 1);
      full.arrive_expecting(Tiles::kBytesOfStage);
      load_slice<of_a>(stages.a(ring.stage), a, full, kTileRows, row, i * slice_size,
                       place.batch * task.a_step);
      load_slice<of_b>(stages.b(ring.stage), b, full, Tiles::kColumns, column, i * slice_size,
                       place.batch * task.b_step);
    }
  });
}

/// Multiplies the slices of one tile. All its stages are released at the end. Calls `after_last` when the
/// last slice has come and its products are begun. Sums are f32, of 8-bit integers int; these come in slices
/// of as many bytes.
template <class T, class Tiles, Lies of_a, Lies of_b, class Sum, class After>
__device__ void multiply_tile(Sum (&c)[kParts][Tiles::kColumns / 2], const Stages<Tiles>& stages,
                              RingPlace<Tiles::kStages>& ring, int slices, After after_last) {
  const auto release = [&](int stage) {
    if (threadIdx.x % kWarp == 0) stages.empty[stage].arrive();
  };
  int before = ring.stage;
  for (int i = 0; i < slices; ++i) {
    const uint32_t a = uniform_in_warp(shared_address(stages.a(ring.stage)));
    stages.full[ring.stage].wait(ring.phase);
    const uint64_t b = operand_at<of_b>(a + Tiles::kBytesOfA, kBlockBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < kSlice / 16; ++k)
#pragma unroll
      for (int part = 0; part < kParts; ++part)
        Product<T, Tiles::kColumns, of_a, of_b>::run(
            c[part], operand_at<of_a>(a + part * kBlockBytes, kBlockBytes) + k * kNextSixteen<of_a>,
            b + k * kNextSixteen<of_b>, i > 0 || k > 0);
    end_of_products();
    if (i > 0) {
      wait_for_products<1>();
      release(before);
    }
    before = ring.stage;
    ring.next();
  }
  after_last();
  wait_for_products<0>();
#pragma unroll
  for (int part = 0; part < kParts; ++part) hold(c[part]);
  release(before);
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

/// Multiplies and stores every second one of the block's tiles: `begin(place)`, `multiply(results, ring,
/// slices, after_last)` as multiply_tile, `store(results, place)`.
template <class Tiles, class Begin, class Multiply, class Store>
__device__ void take_turns(const Stages<Tiles>& stages, const MatmulTask& task, Begin begin,
                           Multiply multiply, Store store) {
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
  RingPlace<Tiles::kStages> ring;
  const Turns turns(consumer);
  TileTaker numbers(stages.numbers);
  bool mine = consumer == 0;
  for (int tile = numbers.next(); tile >= 0; mine = !mine) {
    const TilePlace place = place_of(task, tile);
    const int slices = place.end_slice - place.first_slice;
    if (!mine) {
      ring.skip(slices);
      tile = numbers.next();
      continue;
    }
    const int own = tile;
    float results[kParts][Tiles::kColumns / 2];
    begin(place);
    turns.take();
    multiply(results, ring, slices, [&] {
      tile = numbers.next();
      if (tile >= 0) turns.give();
    });
    store(results, place_of(task, anew(own)));
  }
}

template <class T, class Tiles, class Store, Lies of_a, Lies of_b>
__device__ void multiply_tiles(const Stages<Tiles>& stages, const MatmulMaps& maps, const MatmulTask& task) {
  const auto blocks = [&](const TilePlace& place) { return Store(maps, task, stages.buffers(0), place); };
  take_turns(
      stages, task, [&](const TilePlace& place) { blocks(place).begin(); },
      [&](auto& results, auto& ring, int slices, auto after_last) {
        multiply_tile<T, Tiles, of_a, of_b>(results, stages, ring, slices, after_last);
      },
      [&](auto& results, const TilePlace& place) { blocks(place).store(results); });
  Store::finish();
}

/// What a block does: `load(stages)` by its first thread, `multiply(stages)` by the warpgroups behind the
/// first.
template <class Tiles, class Load, class Multiply>
__device__ void run_block(const MatmulMaps& maps, Load load, Multiply multiply) {
  extern __shared__ __align__(1024) char matmul_shared[];
  const Stages<Tiles> stages(matmul_shared);
  if (threadIdx.x == 0) {
    prefetch(maps.a), prefetch(maps.b);
    stages.init();
  }
  sync_block();
  wait_for_kernels_before();
  let_next_kernel_start();
  // 168 registers for each thread become 24 for those that copy and 240 for those that multiply.
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) load(stages);
  } else {
    take_registers<240>();
    multiply(stages);
  }
}

/// Store: what becomes of results, TileStore, TileUpdate or TileSums.
template <class T, class Tiles, class Store, Lies of_a, Lies of_b>
__global__ void __launch_bounds__(kMatmulThreads, 1)
    matmul_tiles(const __grid_constant__ MatmulMaps maps, const __grid_constant__ MatmulTask task) {
  run_block<Tiles>(
      maps, [&](const auto& stages) { load_slices<Tiles, of_a, of_b>(stages, maps.a, maps.b, task); },
      [&](const auto& stages) { multiply_tiles<T, Tiles, Store, of_a, of_b>(stages, maps, task); });
}

}  // namespace weft::cuda::hopper

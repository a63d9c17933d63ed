#pragma once
#include "matmul_task.hpp"

// Which tiles a block takes. The first one is that of its number; the next one is taken from a counter when
// the block has copied what the one before needs. So a block that starts late, as its multiprocessor was
// busy with another kernel, takes fewer.
namespace weft::cuda::hopper {

/// A place in a ring, and the phase that its barriers are in.
template <int kPlaces>
struct RingPlace {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == kPlaces) stage = 0, phase ^= 1;
  }
  __device__ void skip(int n) {
    phase ^= (stage + n) / kPlaces & 1;
    stage = (stage + n) % kPlaces;
  }
};

/// Numbers of tiles in shared memory: from the thread that copies to the warps that multiply.
struct TileNumbers {
  Barrier *given, *taken;
  int* numbers;

  __device__ explicit TileNumbers(char* shared)
      : given(reinterpret_cast<Barrier*>(shared)),
        taken(given + kTilesAhead),
        numbers(reinterpret_cast<int*>(taken + kTilesAhead)) {}
  __device__ void init() const {
    for (int i = 0; i < kTilesAhead; ++i) given[i].init(1), taken[i].init(4 * kConsumers);
  }
};

/// The side of the thread that copies.
class TileGiver {
 public:
  __device__ TileGiver(const TileNumbers& to, const MatmulTask& task)
      : to_(to), counters_(task.counters), tiles_(task.tiles()) {}

  /// f(tile) for each tile of this block.
  template <class F>
  __device__ void each(F f) {
    const int step = static_cast<int>(gridDim.x);
    for (int tile = static_cast<int>(blockIdx.x);;) {
      give(tile);
      if (tile >= tiles_) break;
      // One that is taken now is there when the copies of this one have begun.
      const int next = step < tiles_ ? step + atomicAdd(counters_, 1) : tiles_;
      f(tile);
      tile = uniform(next);
    }
    if (step < tiles_) reset(step);
  }

 private:
  __device__ void give(int tile) {
    to_.taken[place_.stage].wait(place_.phase ^ 1);
    to_.numbers[place_.stage] = tile < tiles_ ? tile : -1;
    to_.given[place_.stage].arrive();
    place_.next();
  }
  /// The last block finds that all have taken what they take.
  __device__ void reset(int blocks) {
    fence_device();
    if (atomicAdd(counters_ + 1, 1) != blocks - 1) return;
    counters_[0] = 0, counters_[1] = 0;
  }

  TileNumbers to_;
  RingPlace<kTilesAhead> place_;
  int* counters_;
  int tiles_;
};

/// The side of a warp that multiplies.
class TileTaker {
 public:
  __device__ explicit TileTaker(const TileNumbers& from) : from_(from) {}
  /// -1 behind the last one.
  __device__ int next() {
    from_.given[place_.stage].wait(place_.phase);
    const int tile = *static_cast<volatile int*>(from_.numbers + place_.stage);
    sync_warp();
    if (threadIdx.x % kWarp == 0) from_.taken[place_.stage].arrive();
    place_.next();
    return tile;
  }

 private:
  TileNumbers from_;
  RingPlace<kTilesAhead> place_;
};

}  // namespace weft::cuda::hopper

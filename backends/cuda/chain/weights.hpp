#pragma once
#include "exchange.hpp"

// The weights of a block, of all steps of a chain, come into a ring in shared memory, as fast as memory gives
// them: their copies wait for nothing but room in the ring. A chunk has 8 rows and as many columns as all
// warps multiply at a time. One warp copies, the others multiply.
namespace weft::cuda::chains {

constexpr int kChunks = 11;  // in the ring

struct Ring {
  char* memory;
  Barrier *filled, *used;  // kChunks of each
};

/// The descriptions of steps, as far as they are at hand: another ring.
struct Descriptions {
  Words (*steps)[kStepBytes / 16];
  BlockRows* rows;
  Barrier *filled, *used;  // kStepsAtHand of each

  __device__ ChainedStep& step(int i) const {
    return *reinterpret_cast<ChainedStep*>(steps[i % kStepsAtHand]);
  }
  __device__ void wait(int i) const { filled[i % kStepsAtHand].wait(i / kStepsAtHand % 2); }
  /// Says that this warp needs step i no more.
  __device__ void end(int i) const {
    sync_warp();
    if (threadIdx.x % 32 == 0) used[i % kStepsAtHand].arrive();
  }
};

/// Counts chunks, alike for who copies them and who multiplies them.
struct RingPlace {
  int chunk = 0;
  uint32_t phase = 0;
  __device__ void advance() {
    if (++chunk == kChunks) chunk = 0, phase ^= 1;
  }
  /// Says that this warp needs the chunk no more, and goes on to the next one.
  __device__ void release(const Ring& ring) {
    sync_warp();
    if (threadIdx.x % 32 == 0) ring.used[chunk].arrive();
    advance();
  }
};

/// What the copying warp does.
class Copying {
 public:
  __device__ Copying(const Ring& ring, const Descriptions& at_hand, const ChainTables& tables)
      : ring_(ring), at_hand_(at_hand), tables_(tables) {}

  __device__ void run() {
    const BlockRows* rows = tables_.rows + blockIdx.x;
    BlockRows own = *rows;
    for (int i = 0; i < tables_.n_steps; ++i, own = next_) {
      if (i + 1 < tables_.n_steps) next_ = rows[int64_t{i + 1} * gridDim.x];
      describe(i, own);
      if (own.attends) copy_keys(own);
      for (int begin = 0; begin < own.rows; begin += kGroupRows) copy_group(own, begin);
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ void describe(int i, const BlockRows& own) const {
    const int to = i % kStepsAtHand;
    at_hand_.used[to].wait(i / kStepsAtHand % 2 ^ 1);
    if (lane() != 0) return;
    Barrier& filled = at_hand_.filled[to];
    filled.arrive_expecting(kStepBytes + sizeof own);
    const char* const step = reinterpret_cast<const char*>(tables_.steps) + int64_t{own.step} * kStepBytes;
    copy_bytes(at_hand_.steps[to], step, kStepBytes, filled, policy_);
    copy_bytes(at_hand_.rows + to, tables_.rows + int64_t{i} * gridDim.x + blockIdx.x, sizeof own, filled,
               policy_);
  }
  /// Keys and values of attention come in the same order as weights: others would wait behind all of these.
  __device__ void copy_keys(const BlockRows& own) {
    const auto& step = *reinterpret_cast<const ChainedStep*>(reinterpret_cast<const char*>(tables_.steps) +
                                                             int64_t{own.step} * kStepBytes);
    const queries::Sizes& s = step.query.sizes;
    const auto share = queries::Share::of<1>(s, s.ragged.place_of(0), own.split);
    const int most = kKeysBytes / own.row_bytes;
    for (int at = share.first; at < share.end; at += most) {
      const int keys = share.end - at < most ? share.end - at : most;
      const auto bytes = static_cast<uint32_t>(keys * own.row_bytes);
      Barrier& filled = next_chunk(2 * bytes);
      if (lane() < 2)
        copy_bytes(ring_.memory + place_.chunk * kChunkBytes + lane() * kKeysBytes,
                   own.from + lane() * own.to_second + int64_t{at} * own.row_bytes, bytes, filled, policy_);
      place_.advance();
    }
  }
  /// Waits for room, and announces what comes.
  __device__ Barrier& next_chunk(uint32_t bytes) const {
    ring_.used[place_.chunk].wait(place_.phase ^ 1);
    Barrier& filled = ring_.filled[place_.chunk];
    if (lane() == 0) filled.arrive_expecting(bytes);
    sync_warp();
    return filled;
  }
  /// Chunks below each other follow each other: they are multiplied with the same columns of x.
  __device__ void copy_group(const BlockRows& own, int begin) {
    const int end = own.rows < begin + kGroupRows ? own.rows : begin + kGroupRows;
    for (int p = 0; p < own.products; ++p)
      for (int at = 0; at < own.row_bytes; at += kChunkRowBytes)
        for (int row = begin; row < end; row += kChunkRows) copy(own, p, row, at);
  }
  __device__ void copy(const BlockRows& own, int product, int row, int at) {
    const int rows = own.rows - row < kChunkRows ? own.rows - row : kChunkRows,
              bytes = own.row_bytes - at < kChunkRowBytes ? own.row_bytes - at : kChunkRowBytes;
    Barrier& filled = next_chunk(static_cast<uint32_t>(rows * bytes));
    if (lane() < rows)
      copy_bytes(ring_.memory + place_.chunk * kChunkBytes + lane() * kChunkPitch,
                 own.from + product * own.to_second + int64_t{row + lane()} * own.row_bytes + at,
                 static_cast<uint32_t>(bytes), filled, policy_);
    place_.advance();
  }

  const Ring ring_;
  const Descriptions at_hand_;
  const ChainTables tables_;
  const uint64_t policy_ = read_once();
  BlockRows next_{};
  RingPlace place_;
};

}  // namespace weft::cuda::chains

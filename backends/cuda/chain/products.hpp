#pragma once
#include "attention.hpp"
#include "weights.hpp"

// Products of a step of a chain. Each warp multiplies its columns of all of the block's rows, on tensor cores,
// where eight rows of weights are the columns of b. Then one warp joins the sums of a group of rows and runs
// the steps of its elements, while the others go on.
namespace weft::cuda::chains {

/// Shared memory of products: by turns of groups.
struct SumsOfGroups {
  float of[2][kMostProducts][kChainWarps][kGroupRows];
  float squares[2][kChainWarps];  // by turns of steps
};

class Multiplying {
 public:
  __device__ Multiplying(const Ring& ring, const Exchange& exchange, Bits16* x, SumsOfGroups& sums)
      : ring_(ring), exchange_(exchange), x_(x), sums_(sums) {}

  __device__ void run(const ChainedItem& item, const BlockRows own) {
    const int k = item.k;
    turn_ ^= 1;
    const float squares = take_columns(item);
    if (lane() == 0) sums_.squares[turn_][warp()] = squares;
    for (int begin = 0; begin < own.rows; begin += kGroupRows) {
      const int rows = own.rows - begin < kGroupRows ? own.rows - begin : kGroupRows, column = own.first + begin + lane();
      group_ = (group_ + 1) % (2 * kChainWarps);
      const bool joins = group_ % kChainWarps == warp() && lane() < rows;
      float operands[kMostOperands] = {};
      if (joins) load_operands(item, column, operands);
      multiply(k, own, begin);
      sync_computing();
      if (joins) join(item, own.products, column, operands);
    }
    if (own.rows == 0) sync_computing();
    if (own.writes_normed) write_normed(item);
  }

 private:
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static constexpr int kPieces = kChunkColumns / 8, kOwn = kWarpColumns / 8;  // of 8 elements: a chunk's row

  /// The pieces of x that this lane takes: columns of its warp.
  static constexpr int kMostPieces = kMostChainedK / kChunkColumns * kOwn / 32;
  template <class F>
  __device__ static void for_each_piece(int k, F f) {
#pragma unroll
    for (int i = 0; i < kMostPieces; ++i) {
      const int piece = (32 / kOwn * i + lane() / kOwn) * kPieces + warp() * kOwn + lane() % kOwn;
      if (piece * 8 < k) f(i, piece);
    }
  }
  /// x, times the weights of its norm, comes into shared memory, where only this warp reads these columns.
  /// Returns the sum of their squares.
  __device__ float take_columns(const ChainedItem& item) {
    Bits16 weights[kMostPieces], all[kMostPieces];
    const int k = item.k;
    const Source from = item.x;
    const bool normed = item.normed, has_weights = normed && item.norm_weight;
    for_each_piece(k, [&](int i, int piece) {
      if (has_weights) weights[i] = reinterpret_cast<const Bits16*>(item.norm_weight)[piece];
    });
    bool awaited;
    do {
      awaited = false;
      for_each_piece(k, [&](int i, int piece) {
        if (from.place < 0) {
          all[i] = static_cast<const Bits16*>(from.plain)[piece];
        } else {
          all[i] = load_now<Bits16>(exchange_.own + from.place + 16 * piece);
          awaited = awaited || is_awaited(all[i]);
        }
      });
    } while (awaited);
    float squares = 0;
    for_each_piece(k, [&](int i, int piece) {
      x_[piece] = normed ? skinny::weighted<bf16>(all[i], weights[i], has_weights, squares) : all[i];
    });
    sync_warp();
    return normed ? sum_of<32>(squares) : 0;
  }

  /// Multiplies the rows of a group; leaves this warp's sums.
  __device__ void multiply(int k, const BlockRows& own, int begin) {
    constexpr int kLoads = kWarpColumns / 32;
    const int row = lane() / 4, piece = lane() % 4;
    const char* const weights = ring_.memory + row * kChunkPitch + 16 * (warp() * kOwn + piece);
    float sums[kLoads][4] = {};
    for_each_chunk(
        own, begin,
        [&](int, int, int at) {
          const int column = at / 2 + kWarpColumns * warp();
          ring_.filled[place_.chunk].wait(place_.phase);
          if (column < k) {
            const auto* const from = reinterpret_cast<const Bits16*>(weights + place_.chunk * kChunkBytes);
            const Bits16* const of_x = x_ + column / 8 + piece;
            Bits16 w[kLoads], x[kLoads];
#pragma unroll
            for (int i = 0; i < kLoads; ++i) w[i] = from[4 * i], x[i] = of_x[4 * i];
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
              for (int i = 0; i < kLoads; ++i) multiply_half(sums[i], w[i], x[i], half);
          }
          sync_warp();
          if (lane() == 0) ring_.used[place_.chunk].arrive();
          place_.advance();
        },
        [&](int product, int of_block) {
          if (row == 0) {
            float* const to = sums_.of[group_ % 2][product][warp()] + (of_block - begin) + 2 * piece;
            to[0] = sums[0][0] + sums[1][0] + (sums[2][0] + sums[3][0]);
            to[1] = sums[0][1] + sums[1][1] + (sums[2][1] + sums[3][1]);
          }
#pragma unroll
          for (int i = 0; i < kLoads; ++i)
            for (float& s : sums[i]) s = 0;
        });
  }
  /// All rows of a are x.
  __device__ static void multiply_half(float (&sums)[4], const Bits16& w, const Bits16& x, int half) {
    const uint32_t first = x.of[2 * half], second = x.of[2 * half + 1];
    multiply_add<bf16>(sums, {first, first, second, second}, {w.of[2 * half], w.of[2 * half + 1]});
  }

  __device__ void load_operands(const ChainedItem& item, int column, float (&to)[kMostOperands]) const {
#pragma unroll 1
    for (int o = 0; o < item.n_operands; ++o) {
      const float x = exchange_.take_one(item.operands[o], item.operand_formats[o], column);
#pragma unroll
      for (int i = 0; i < kMostOperands; ++i) to[i] = i == o ? x : to[i];
    }
  }
  __device__ float scale_of(const ChainedItem& item) const {
    if (!item.normed) return 1;
    float squares = 0;
#pragma unroll
    for (int w = 0; w < kChainWarps; ++w) squares += sums_.squares[turn_][w];
    return 1 / sqrtf(squares / static_cast<float>(item.k) + item.epsilon);
  }
  __device__ float sum_of_warps(int product) const {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kChainWarps; ++w) sum += sums_.of[group_ % 2][product][w][lane()];
    return sum;
  }
  /// One lane has an element.
  __device__ void join(const ChainedItem& item, int products, int column, const float (&operands)[kMostOperands]) {
    const float scale = scale_of(item),
                first = skinny::rounded(sum_of_warps(0) * scale, item.product_formats[0]),
                second = products > 1 ? skinny::rounded(sum_of_warps(1) * scale, item.product_formats[1]) : 0;
    float value = 0, kept = 0;
#pragma unroll 1
    for (int i = 0; i < item.n_operations; ++i) {
      const Operation op = item.operations[i];
      const int o = static_cast<int>(op.other);
      float other = op.number;
      other = o == 0 ? first : o == 1 ? second : other;
#pragma unroll
      for (int n = 0; n < kMostOperands; ++n) other = o == static_cast<int>(Other::operand) + n ? operands[n] : other;
      other = op.other == Other::kept ? kept : op.other == Other::itself ? value : other;
      if (op.code == StepCode::convert)
        value = other;
      else
        value = skinny::computed(op.code, op.reversed ? other : value, op.reversed ? value : other);
      value = skinny::rounded(value, op.rounded_to);
      if (op.keeps) kept = value;
      if (op.result) exchange_.put(item.results[op.result - 1], item.result_formats[op.result - 1], column, value);
    }
  }
  /// What rms_norm gives, for whoever reads that.
  __device__ void write_normed(const ChainedItem& item) const {
    const float scale = scale_of(item);
    for_each_piece(item.k, [&](int, int piece) {
      for (int e = 0; e < 8; ++e) {
        const int64_t at = int64_t{piece} * 8 + e;
        const float x = exchange_.take_one(item.x, Format::bf16, at),
                    w = item.norm_weight ? widened(item.norm_weight[at]) : 1;
        exchange_.put(item.normed_row, Format::bf16, at, x * scale * w);
      }
    });
  }

  const Ring ring_;
  const Exchange exchange_;
  Bits16* const x_;
  SumsOfGroups& sums_;
  RingPlace place_;
  int turn_ = 0, group_ = 0;
};

}  // namespace weft::cuda::chains

#pragma once
#include "attention.hpp"

// Products of a step of a chain. Each warp multiplies its columns of all of the block's rows, on tensor
// cores, where eight rows of weights are the columns of b. Then one warp joins the sums of a group of rows
// and runs the steps of its elements, while the others go on.
namespace weft::cuda::chains {

/// Shared memory of products: by turns of groups.
struct SumsOfGroups {
  float of[2][kMostProducts][kChainWarps][kGroupRows];
  float squares[2][kChainWarps];  // by turns of steps
};

class Multiplying {
 public:
  __device__ Multiplying(const Ring& ring, const Exchange& exchange, Words* x, SumsOfGroups& sums)
      : ring_(ring), exchange_(exchange), x_(x), sums_(sums) {}

  RingPlace place;  ///< of the next chunk

  __device__ void run(const ChainedItem& item, const BlockRows own) {
    const int k = item.k;
    turn_ ^= 1;
    const float squares = take_columns(item);
    if (lane() == 0) sums_.squares[turn_][warp()] = squares;
    for (int begin = 0; begin < own.rows; begin += kGroupRows) {
      const int rows = own.rows - begin < kGroupRows ? own.rows - begin : kGroupRows,
                column = own.first + begin + lane();
      group_ = (group_ + 1) % (2 * kChainWarps);
      const bool joins = group_ % kChainWarps == warp() && lane() < rows;
      float operands[kMostOperands] = {};
      if (joins) load_operands(item, column, operands);
      multiply(k, own, begin);
      sync_computing();
      if (joins) join(item, own.products, column, operands);
    }
    if (own.rows == 0) sync_computing();
    if (own.writes_normed && (item.normed_row.plain || item.normed_row.place >= 0)) write_normed(item);
  }

 private:
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static constexpr int kPieces = kChunkColumns / 8, kOwn = kWarpColumns / 8;  // of 8 elements: a chunk's row
  static constexpr int kSets = kGroupRows / kChunkRows, kLoads = kWarpColumns / 32;
  static constexpr int kMostPieces = kMostChainedK / kChunkColumns * kOwn / 32;  // of a lane

  /// Number i of the pieces of x that this lane takes: columns of its warp.
  __device__ static int piece_of(int i) {
    return (32 / kOwn * i + lane() / kOwn) * kPieces + warp() * kOwn + lane() % kOwn;
  }
  /// x, times the weights of its norm, comes into shared memory, where only this warp reads these columns.
  /// Returns the sum of their squares.
  __device__ float take_columns(const ChainedItem& item) {
    const int k = item.k;
    if (k <= 2 * kChunkColumns) return take_columns<1>(item, k);
    if (k <= 4 * kChunkColumns) return take_columns<2>(item, k);
    return take_columns<kMostPieces>(item, k);
  }
  template <int n>
  __device__ float take_columns(const ChainedItem& item, int k) {
    const bool normed = item.normed;
    const auto* const of_norm = reinterpret_cast<const Words*>(normed ? item.norm_weight : nullptr);
    const auto [from, outside] = exchange_.place_of(item.x);
    Words weights[n], all[n];
#pragma unroll
    for (int i = 0; i < n; ++i)
      if (of_norm && piece_of(i) * 8 < k) weights[i] = of_norm[piece_of(i)];
    bool awaited;
    do {
      awaited = false;
#pragma unroll
      for (int i = 0; i < n; ++i) {
        all[i] = Words{};
        if (piece_of(i) * 8 < k) all[i] = load_now<Words>(from + 16 * piece_of(i));
      }
#pragma unroll
      for (int i = 0; i < n; ++i) awaited = awaited || is_awaited(all[i]);
    } while (awaited && !outside);
    float squares = 0;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (normed) all[i] = skinny::weighted<bf16>(all[i], weights[i], of_norm != nullptr, squares);
      // As the two halves of a's rows want it (multiply_piece).
      if (piece_of(i) * 8 < k) x_[piece_of(i)] = {all[i].of[0], all[i].of[2], all[i].of[1], all[i].of[3]};
    }
    sync_warp();
    return normed ? sum_of<32>(squares) : 0;
  }

  /// Multiplies the rows of a group; leaves this warp's sums.
  __device__ void multiply(int k, const BlockRows& own, int begin) {
    const int rows = own.rows - begin < kGroupRows ? own.rows - begin : kGroupRows, row = lane() / 4;
    for (int p = 0; p < own.products; ++p) {
      float sums[kSets][2][4] = {};
      for (int column = kWarpColumns * warp(), at = 0; at < own.row_bytes;
           at += kChunkRowBytes, column += kChunkColumns)
        multiply_chunks(column, column < k, rows, sums);
      float(&to)[kGroupRows] = sums_.of[group_ % 2][p][warp()];
#pragma unroll
      for (int set = 0; set < kSets; ++set)
        if (row == 0) {
          float* const two = to + kChunkRows * set + 2 * (lane() % 4);
          two[0] = sums[set][0][0] + sums[set][1][2], two[1] = sums[set][0][1] + sums[set][1][3];
        }
    }
  }
  /// Chunks below each other, times the same columns of x.
  __device__ void multiply_chunks(int column, bool there, int rows, float (&sums)[kSets][2][4]) {
    const int row = lane() / 4, piece = lane() % 4;
    Words x[kLoads] = {};
    if (there)
#pragma unroll
      for (int i = 0; i < kLoads; ++i) x[i] = load_shared(x_ + column / 8 + piece + 4 * i);
    const char* const weights = ring_.memory + row * kChunkPitch + 16 * (warp() * kOwn + piece);
#pragma unroll
    for (int set = 0; set < kSets; ++set) {
      if (kChunkRows * set >= rows) break;
      ring_.filled[place.chunk].wait(place.phase);
      const auto* const from = reinterpret_cast<const Words*>(weights + place.chunk * kChunkBytes);
      if (there)
#pragma unroll
        for (int i = 0; i < kLoads; ++i) multiply_piece(sums[set], load_shared(from + 4 * i), x[i]);
      place.release(ring_);
    }
  }
  /// Rows 0 to 7 of a are the first half of a piece of x, the others the second: of the first sums they are
  /// right, of the second ones these.
  __device__ static void multiply_piece(float (&sums)[2][4], const Words& w, const Words& x) {
    multiply_add<bf16>(sums[0], x.of, {w.of[0], w.of[1]});
    multiply_add<bf16>(sums[1], x.of, {w.of[2], w.of[3]});
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
    return rsqrtf(squares * item.per_column + item.epsilon);
  }
  __device__ float sum_of_warps(int product) const {
    float sum[2] = {};
#pragma unroll
    for (int w = 0; w < kChainWarps; ++w) sum[w % 2] += sums_.of[group_ % 2][product][w][lane()];
    return sum[0] + sum[1];
  }
  /// One lane has an element.
  __device__ void join(const ChainedItem& item, int products, int column,
                       const float (&operands)[kMostOperands]) {
    const float scale = scale_of(item),
                first = skinny::rounded(sum_of_warps(0) * scale, item.product_formats[0]);
    if (item.ending != ChainedItem::operations_of_it)
      return exchange_.put(item.results[0], item.result_formats[0], column,
                           item.ending == ChainedItem::sum ? first + operands[0] : first);
    const float second = products > 1 ? skinny::rounded(sum_of_warps(1) * scale, item.product_formats[1]) : 0;
    float value = 0, kept = 0;
#pragma unroll 1
    for (int i = 0; i < item.n_operations; ++i) {
      const Operation op = item.operations[i];
      const int o = static_cast<int>(op.other);
      float other = op.number;
      other = o == 0 ? first : o == 1 ? second : other;
#pragma unroll
      for (int n = 0; n < kMostOperands; ++n)
        other = o == static_cast<int>(Other::operand) + n ? operands[n] : other;
      other = op.other == Other::kept ? kept : op.other == Other::itself ? value : other;
      if (op.code == StepCode::convert)
        value = other;
      else
        value = skinny::computed(op.code, op.reversed ? other : value, op.reversed ? value : other);
      value = skinny::rounded(value, op.rounded_to);
      if (op.keeps) kept = value;
      if (op.result)
        exchange_.put(item.results[op.result - 1], item.result_formats[op.result - 1], column, value);
    }
  }
  /// What rms_norm gives, for whoever reads that.
  __device__ void write_normed(const ChainedItem& item) const {
    const float scale = scale_of(item);
#pragma unroll 1
    for (int at = static_cast<int>(threadIdx.x); at < item.k; at += kComputing) {
      const float x = exchange_.take_one(item.x, Format::bf16, at),
                  w = item.norm_weight ? widened(item.norm_weight[at]) : 1;
      exchange_.put(item.normed_row, Format::bf16, at, x * scale * w);
    }
  }

  const Ring ring_;
  const Exchange exchange_;
  Words* const x_;
  SumsOfGroups& sums_;
  int turn_ = 0, group_ = 0;
};

}  // namespace weft::cuda::chains

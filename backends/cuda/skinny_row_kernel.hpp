#pragma once
#include "skinny_kernel.hpp"

// Products of one row, which is what a token of one sequence takes. A warp has a row of the weights, or a
// part of it, and loads its first pieces before the kernel waits for the ones before it: while those end, the
// memory goes on reading. What is left after the wait is short: x comes into shared memory, and what else the
// steps need is in registers by then.
namespace weft::cuda::skinny {

constexpr int kHalf = 4, kChunk = 2 * kHalf;  // pieces that a lane loads at a time, and that are under way
constexpr int kRowWarps = 2048;               // fewer of them share rows

/// Chunks of a warp in a row of so many bytes.
inline int chunks_of(int64_t bytes) {
  constexpr int kBytes = 32 * kChunk * 16;
  return static_cast<int>((bytes + kBytes - 1) / kBytes);
}
/// Bytes of x in shared memory, and the most of them.
inline size_t row_bytes(int chunks) { return static_cast<size_t>(chunks) * 32 * kChunk * 16; }
constexpr int kMostChunks = 12;

/// The sum of the products of 16 bytes of x and of weights.
template <class T>
__device__ float dot(const Words& a, const Words& b, float sum) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      sum += as_float(a.of[i]) * as_float(b.of[i]);
    } else {
      sum += widened(T{static_cast<uint16_t>(a.of[i])}) * widened(T{static_cast<uint16_t>(b.of[i])});
      sum +=
          widened(T{static_cast<uint16_t>(a.of[i] >> 16)}) * widened(T{static_cast<uint16_t>(b.of[i] >> 16)});
    }
  }
  return sum;
}

/// What a warp multiplies with x: chunks of some rows, those of both products of each row.
template <class T>
class PartOfRows {
  static constexpr int kOf = 16 / sizeof(T);  // elements of a piece

 public:
  /// Part `part` of rows `row`, row + stride, ...
  __device__ PartOfRows(const Item& item, int row, int stride, int rows, int part)
      : products_(item.products), rows_(rows) {
    const int pieces = item.k / kOf, first = item.chunks * part / item.split;
    chunks_ = item.chunks * (part + 1) / item.split - first;
    x_ = first * 32 * kChunk + static_cast<int>(threadIdx.x) % 32;
    from_ = begin_ = static_cast<const Words*>(item.weights[0]) + int64_t{row} * pieces + x_;
    to_second_ = products_ > 1
                     ? static_cast<const Words*>(item.weights[1]) - static_cast<const Words*>(item.weights[0])
                     : 0;
    to_row_ = int64_t{stride} * pieces - to_second_;
    left_ = pieces - x_, halves_ = 2 * chunks_;
    load(loaded_[0]), load(loaded_[1]);
  }
  /// The sum of the next product, of `pieces` pieces; loads what comes after each when that is used.
  __device__ float times(const Words* x, int pieces) {
    float sums[2] = {};
    x += x_;
    for (int c = 0; c < chunks_; ++c, x += 32 * kChunk) {
      sums[0] = use(loaded_[0], x, sums[0]);
      load_next(loaded_[0], pieces);
      sums[1] = use(loaded_[1], x + 32 * kHalf, sums[1]);
      load_next(loaded_[1], pieces);
    }
    return sum_of<32>(sums[0] + sums[1]);
  }

 private:
  /// The next pieces of this lane; zeros behind the row's end.
  __device__ void load(Words (&to)[kHalf]) {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) to[i] = i * 32 < left_ ? load_streamed<Words>(from_ + i * 32) : Words{};
    from_ += 32 * kHalf, left_ -= 32 * kHalf, --halves_;
  }
  __device__ void load_next(Words (&to)[kHalf], int pieces) {
    if (halves_ == 0) {
      if (entered_ < products_) {
        ++entered_, begin_ += to_second_;
      } else {
        if (--rows_ <= 0) return;
        entered_ = 1, begin_ += to_row_;
      }
      from_ = begin_, left_ = pieces - x_, halves_ = 2 * chunks_;
    }
    load(to);
  }
  __device__ static float use(const Words (&from)[kHalf], const Words* x, float sum) {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) sum = dot<T>(from[i], x[i * 32], sum);
    return sum;
  }

  Words loaded_[2][kHalf];
  const Words *from_, *begin_;  // what is loaded next; the row that it is of
  int64_t to_second_, to_row_;  // to the second product, and from the last one to that of the next row
  int products_, rows_, entered_ = 1, x_, chunks_, left_, halves_;
};

/// x of an item, times the weights of its norm, in shared memory. Returns the sum of its squares where it is
/// normed.
template <class T>
__device__ float take_row(const T* x, const T* weights, bool normed, int pieces, int chunks, Words* to) {
  __shared__ float of_warps[kWarps];
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < chunks * 32 * kChunk; i += kThreads) {
    Words piece{};
    if (i < pieces) {
      piece = reinterpret_cast<const Words*>(x)[i];
      if constexpr (sizeof(T) == 2)
        if (normed)
          piece = weighted<T>(piece, weights ? reinterpret_cast<const Words*>(weights)[i] : Words{},
                              weights != nullptr, squares);
    }
    to[i] = piece;
  }
  if (normed) {
    squares = sum_of<32>(squares);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  }
  sync_block();
  squares = 0;
  if (normed)
    for (const float w : of_warps) squares += w;
  return squares;
}

/// The steps of one element. Lane i has step i, and its value.
class StepsOfWarp {
 public:
  __device__ StepsOfWarp(const Item& item, int column) : leaves_(item.leaves), steps_(item.n_steps) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane >= steps_) return;
    own_ = item.steps[lane];
    if (own_.code == StepCode::element || own_.code == StepCode::column) {
      operand_format_ = item.operand_formats[own_.a];
      operand_ = static_cast<const char*>(item.operands[own_.a]) + int64_t{column} * size_of(operand_format_);
    }
    for (int i = 0; i < item.n_results; ++i)
      if (item.result_steps[i] == lane) {  // of a step, one result at most
        result_format_ = item.result_formats[i];
        result_ = static_cast<char*>(item.results[i]) + int64_t{column} * size_of(result_format_);
      }
  }
  /// Goes on to another element.
  __device__ void advance(int columns) {
    if (operand_) operand_ = static_cast<const char*>(operand_) + int64_t{columns} * size_of(operand_format_);
    if (result_) result_ = static_cast<char*>(result_) + int64_t{columns} * size_of(result_format_);
  }
  /// After the wait: what comes late must be asked for early.
  __device__ void load_operands() { value_ = operand_ ? loaded(operand_, operand_format_, 0) : own_.number; }
  __device__ void run(float first, float second) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < steps_ && own_.code == StepCode::product) value_ = own_.a ? second : first;
    value_ = rounded(value_, own_.rounded_to);
    const int what =
        static_cast<int>(own_.code) | own_.a << 8 | own_.b << 16 | static_cast<int>(own_.rounded_to) << 24;
    for (int i = leaves_; i < steps_; ++i) {
      const int step = shuffle(what, i);
      const float result = computed(static_cast<StepCode>(step & 255), shuffle(value_, step >> 8 & 255),
                                    shuffle(value_, step >> 16 & 255));
      if (lane == i) value_ = rounded(result, static_cast<Format>(step >> 24));
    }
    if (result_) stored(result_, result_format_, 0, value_);
  }

 private:
  __device__ static int size_of(Format f) { return f == Format::f32 ? 4 : 2; }

  int leaves_, steps_;
  ProductStep own_{};
  float value_ = 0;
  Format operand_format_{}, result_format_{};
  const void* operand_ = nullptr;
  void* result_ = nullptr;
};

/// Adds the sums of the warps that share a row, and has the first of them run its steps.
__device__ inline void run_joined(StepsOfWarp& steps, float first, float second, int split, int rows) {
  __shared__ float sums[kMostProducts][kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) sums[0][warp] = first, sums[1][warp] = second;
  sync_block();
  if (warp % split || rows == 0) return;
  for (int s = 1; s < split; ++s) first += sums[0][warp + s], second += sums[1][warp + s];
  steps.run(first, second);
}

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks) multiply_row(const __grid_constant__ Items items) {
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x);
  if (number == items.first_blocks[items.n]) {
    wait_for_kernels_before();
    return normalize_rows(items.norm);
  }
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  const int split = item.split, warp = static_cast<int>(threadIdx.x) / 32, part_number = warp % split,
            each = kWarps / split, own = (number - items.first_blocks[i]) * each + warp / split,
            stride = (items.first_blocks[i + 1] - items.first_blocks[i]) * each,
            rows = own < item.n ? (item.n - own + stride - 1) / stride : 0;
  const T* const from = static_cast<const T*>(item.x);
  const bool normed = item.normed;
  const T* const norm_weight = normed ? reinterpret_cast<const T*>(items.norm.weight) : nullptr;
  const float epsilon = items.norm.epsilon;
  const int k = item.k, chunks = item.chunks, products = item.products,
            pieces = k / (16 / static_cast<int>(sizeof(T)));
  if (!items.early) wait_for_kernels_before();
  PartOfRows<T> part(item, rows ? own : 0, stride, rows, part_number);
  StepsOfWarp steps(item, rows ? own : 0);
  wait_for_kernels_before();
  steps.load_operands();
  Words* const x = dynamic_shared<Words>();
  const float squares = take_row<T>(from, norm_weight, normed, pieces, chunks, x);
  const float scale = normed ? 1 / sqrtf(squares / static_cast<float>(k) + epsilon) : 1;
  if (split > 1) {  // a row for each warp
    const float first = part.times(x, pieces) * scale,
                second = products > 1 ? part.times(x, pieces) * scale : 0;
    return run_joined(steps, first, second, split, rows);
  }
  for (int row = 0; row < rows; ++row) {
    const float first = part.times(x, pieces) * scale,
                second = products > 1 ? part.times(x, pieces) * scale : 0;
    steps.run(first, second);
    if (row + 1 < rows) steps.advance(stride), steps.load_operands();
  }
}

}  // namespace weft::cuda::skinny

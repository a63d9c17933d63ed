#pragma once
#include "skinny_kernel.hpp"

// Products of one row, which is what a token of one sequence takes. Each warp has a row of the weights, or of two of them, and its
// loads begin before the kernel waits for the ones before it: while those end, the memory goes on reading. The row of x lies in
// shared memory.
namespace weft::cuda::skinny {

#ifndef ROW_LOADS
#define ROW_LOADS 8
#define ROW_BLOCKS 5
#endif
constexpr int kRowLoads = ROW_LOADS;  // pieces that a lane copies at a time

/// Bytes of shared memory: x, and what each lane copies.
inline size_t row_bytes(int k, size_t of_element) {
  const size_t pieces = (static_cast<size_t>(k) * of_element / 16 + 31) / 32 * 32;
  return (pieces + kRowLoads * kThreads) * 16;
}
constexpr size_t kMostRowBytes = size_t{96} << 10;

/// The sum of the products of 16 bytes of x and of weights.
template <class T>
__device__ int pieces_of(const Item& item) {
  return item.k / (16 / static_cast<int>(sizeof(T)));
}

template <class T>
__device__ float dot(const Bits16& a, const Bits16& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      sum += as_float(a.of[i]) * as_float(b.of[i]);
    } else {
      sum += widened(T{static_cast<uint16_t>(a.of[i])}) * widened(T{static_cast<uint16_t>(b.of[i])});
      sum += widened(T{static_cast<uint16_t>(a.of[i] >> 16)}) * widened(T{static_cast<uint16_t>(b.of[i] >> 16)});
    }
  }
  return sum;
}

/// Copies the pieces of a warp's rows, one of each product after the other, into slots of shared memory. Each lane reads what it has
/// copied itself.
template <class T>
class RowsOfWarp {
 public:
  __device__ RowsOfWarp(const Item& item, int row, Bits16* slots)
      : item_(item), row_(row), slots_(slots + threadIdx.x), pieces_(pieces_of<T>(item)), own_((pieces_ + 31) / 32) {
    enter(0);
    for (int i = 0; i < kRowLoads; ++i) copy(i);
  }
  /// The sum of product `number`: they are asked for in their order.
  __device__ float multiply(int number, const Bits16* x) {
    float sum = 0;
    const int first = number * own_;
    x += threadIdx.x % 32;
    for (int i = 0; i < own_; ++i) {
      const int at = first + i;
      if (at > 0) copy(at + kRowLoads - 1);  // into the slot of the piece before
      wait_for_copies<kRowLoads - 1>();
      sum += dot<T>(slots_[at % kRowLoads * kThreads], x[i * 32]);
    }
    return sum_of<32>(sum);
  }

 private:
  __device__ void enter(int product) {
    product_ = product, copied_ = 0;
    from_ = static_cast<const Bits16*>(item_.weights[product]) + int64_t{row_} * pieces_;
  }
  __device__ void copy(int at) {
    if (copied_ == own_ && product_ + 1 < item_.products) enter(product_ + 1);
    if (copied_ < own_) {
      const int piece = copied_++ * 32 + static_cast<int>(threadIdx.x) % 32;
      const bool there = piece < pieces_;
      copy_async(slots_ + at % kRowLoads * kThreads, from_ + (there ? piece : 0), there);
    }
    end_of_copies();
  }

  const Item& item_;
  const int row_;
  Bits16* const slots_;
  const int pieces_, own_;  // of a row; of a lane
  int product_, copied_;
  const Bits16* from_;
};

/// x of an item into shared memory, times the weights of its norm. Returns the sum of its squares where it is normed.
template <class T>
__device__ float take_row(const Item& item, const SkinnyNorm& norm, Bits16* to) {
  __shared__ float of_warps[kWarps];
  constexpr int kOf = 16 / sizeof(T);
  const T* const weights = item.normed ? reinterpret_cast<const T*>(norm.weight) : nullptr;
  const int pieces = (pieces_of<T>(item) + 31) / 32 * 32;
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < pieces; i += kThreads) {
    Bits16 piece = piece_of(static_cast<const T*>(item.x), i * kOf, item.k, true);
    if constexpr (sizeof(T) == 2)
      if (item.normed)
        piece = weighted<T>(piece, weights ? piece_of(weights, i * kOf, item.k, true) : Bits16{}, weights != nullptr,
                            squares);
    to[i] = piece;
  }
  if (item.normed) {
    squares = sum_of<32>(squares);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = squares;
  }
  sync_block();
  squares = 0;
  if (item.normed)
    for (const float w : of_warps) squares += w;
  return squares;
}

/// The steps of one element. Lane i has the value of step i.
struct StepsOfWarp {
  const Item& item;
  int column;
  float value = 0;

  /// Loads operands: those of steps behind a product would come late.
  __device__ StepsOfWarp(const Item& item, int column) : item(item), column(column) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane >= item.n_steps) return;
    const ProductStep own = item.steps[lane];
    if (own.code == StepCode::element || own.code == StepCode::column)
      value = loaded(item.operands[own.a], item.operand_formats[own.a], column);
  }
  __device__ void run(const float* products) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const ProductStep own = item.steps[lane < item.n_steps ? lane : 0];
    if (own.code == StepCode::product) value = own.a ? products[1] : products[0];
    if (own.code == StepCode::number) value = own.number;
    value = rounded(value, own.rounded_to);
    for (int i = 0; i < item.n_steps; ++i) {
      const ProductStep s = item.steps[i];
      if (s.code < StepCode::add) continue;
      const float result = rounded(computed(s.code, shuffle(value, s.a), shuffle(value, s.b)), s.rounded_to);
      if (lane == i) value = result;
    }
    for (int i = 0; i < item.n_results; ++i)
      if (lane == item.result_steps[i]) stored(item.results[i], item.result_formats[i], column, value);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads, ROW_BLOCKS) multiply_row(const __grid_constant__ Items items) {
  let_next_kernel_start();
  const int number = static_cast<int>(blockIdx.x);
  if (number == items.first_blocks[items.n]) {
    wait_for_kernels_before();
    return normalize_rows(items.norm);
  }
  int i = 0;
  while (items.first_blocks[i + 1] <= number) ++i;
  const Item& item = items.all[i];
  const int own = (number - items.first_blocks[i]) * kWarps + static_cast<int>(threadIdx.x) / 32, row = own < item.n ? own : item.n - 1;
  if (!items.early) wait_for_kernels_before();
  Bits16* const slots = dynamic_shared<Bits16>();
  Bits16* const x = slots + kRowLoads * kThreads;
  RowsOfWarp<T> weights(item, row, slots);
  wait_for_kernels_before();
  StepsOfWarp steps(item, row);
  const float squares = take_row<T>(item, items.norm, x);
  float products[kMostProducts] = {};
#pragma unroll
  for (int p = 0; p < kMostProducts; ++p)
    if (p < item.products) products[p] = weights.multiply(p, x);
  if (item.normed) {
    const float scale = 1 / sqrtf(squares / static_cast<float>(item.k) + items.norm.epsilon);
    for (float& product : products) product *= scale;
  }
  if (own < item.n) steps.run(products);
}

}  // namespace weft::cuda::skinny

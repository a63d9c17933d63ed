#include "../kernel.hpp"
#include "../kernels.hpp"

// Softmax of rows, a block for each. Rows of up to 16 numbers a thread are read once and kept in registers.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kKept = 16;

struct Larger {
  __device__ float operator()(float a, float b) const { return a != a ? a : b != b ? b : fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines x of all threads of a row: of a warp, or of the whole block. A NaN is larger than any number.
template <int kOfRow, class F>
__device__ float over_row(float x, float* shared, F combine) {
  for (int m = kWarp / 2; m > 0; m /= 2) x = combine(x, shuffle_xor(x, m));
  if (kOfRow == kWarp) return x;
  sync_block();  // the results of the previous call have been read
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  sync_block();
  x = shared[0];
  for (int w = 1; w < kThreads / kWarp; ++w) x = combine(x, shared[w]);
  return x;
}

/// kOfRow threads take a row, and keep its numbers if each of them has at most kKept; else it is read three
/// times.
template <class T, int kOfRow, bool kKeep>
__global__ void __launch_bounds__(kThreads) softmax_of_rows(const T* x, T* y, int64_t rows, int64_t columns) {
  __shared__ float shared[kThreads / kWarp];
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kOfRow;
  if (row >= rows) return;  // whole warps
  const int64_t first = row * columns + threadIdx.x % kOfRow, end = (row + 1) * columns;
  float kept[kKept];
  if (kKeep) {
#pragma unroll
    for (int k = 0; k < kKept; ++k)
      kept[k] = first + k * kOfRow < end ? widened(x[first + k * kOfRow]) : -INFINITY;
  }
  float most = -INFINITY, sum = 0;
  if (kKeep) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) most = Larger()(most, kept[k]);
  } else {
    for (int64_t i = first; i < end; i += kOfRow) most = Larger()(most, widened(x[i]));
  }
  most = over_row<kOfRow>(most, shared, Larger());
  if (kKeep) {
#pragma unroll
    for (int k = 0; k < kKept; ++k)
      if (first + k * kOfRow < end) sum += kept[k] = expf(kept[k] - most);
  } else {
    for (int64_t i = first; i < end; i += kOfRow) sum += expf(widened(x[i]) - most);
  }
  sum = over_row<kOfRow>(sum, shared, Plus());
  if (kKeep) {
#pragma unroll
    for (int k = 0; k < kKept; ++k)
      if (first + k * kOfRow < end) y[first + k * kOfRow] = narrowed<T>(kept[k] / sum);
  } else {
    for (int64_t i = first; i < end; i += kOfRow) y[i] = narrowed<T>(expf(widened(x[i]) - most) / sum);
  }
}

Support accepts(const OpCall& c) {
  const auto x = c.input(0);
  const int64_t axis = c.attr("axis").integer(-1), rank = x.rank();
  const DType type = x.dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  if (rank == 0 || (axis != -1 && axis != rank - 1))
    return Support::no("axis must be last, got {} of {}", axis, rank);
  int64_t rows = 1;
  for (int64_t d = 0; d < rank - 1; ++d) rows *= x.shape()[d].max();
  if (rows >= int64_t{1} << 31) return Support::no("rows must be below 2^31, got {}", rows);
  return Support::yes();
}

template <class T, int kOfRow, bool kKeep>
Outcome run(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const int64_t columns = x.dim(x.rank() - 1), rows = x.size() / columns;
  const Grid grid{static_cast<unsigned>((rows * kOfRow + kThreads - 1) / kThreads)};
  return start(l, grid, kThreads, 0, softmax_of_rows<T, kOfRow, kKeep>, x.data<const T>(), y.data<T>(), rows,
               columns);
}
template <class T>
Outcome run(const Launch& l) {
  const int64_t columns = l.input(0).dims().back();
  if (columns <= kWarp * kKept) return run<T, kWarp, true>(l);
  return columns <= kThreads * kKept ? run<T, kThreads, true>(l) : run<T, kThreads, false>(l);
}

Outcome launch(const Launch& l) {
  if (l.input(0).size() == 0) return Outcome::ok();
  switch (l.input(0).dtype()) {
    case DType::f16: return run<f16>(l);
    case DType::bf16: return run<bf16>(l);
    default: return run<float>(l);
  }
}

}  // namespace

std::span<const KernelRecord> softmax_rows() {
  static const KernelRecord all[] = {
      {.op = "softmax", .variant = "rows", .reads = {"axis"}, .accepts = accepts, .launch = launch}};
  return all;
}

}  // namespace weft::cuda

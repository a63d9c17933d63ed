#include "gpu.hpp"

// Softmax of rows, one block per row. It is launched while the previous kernel drains (programmatic dependent
// launch) and touches memory only after that one has ended.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256;

__device__ float over_block(float v, float (*combine)(float, float), float* shared) {
  for (int o = 16; o > 0; o /= 2) v = combine(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();  // until the previous call's results are read
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[0];
  for (int w = 1; w < kThreads / 32; ++w) v = combine(v, shared[w]);
  return v;
}

__device__ float larger(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
__device__ float plus(float a, float b) { return a + b; }

__global__ void __launch_bounds__(kThreads) softmax_rows(const float* x, float* y, int64_t columns) {
  __shared__ float shared[kThreads / 32];
  wait_for_kernels_before();
  let_next_kernel_start();
  const float* row = x + blockIdx.x * columns;
  float* out = y + blockIdx.x * columns;
  float most = -INFINITY;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) most = larger(most, row[i]);
  most = over_block(most, larger, shared);
  float sum = 0;
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) sum += expf(row[i] - most);
  sum = over_block(sum, plus, shared);
  for (int64_t i = threadIdx.x; i < columns; i += kThreads) out[i] = expf(row[i] - most) / sum;
}

Support accepts(const OpCall& c) {
  const auto x = c.input(0);
  const int64_t axis = c.attr("axis").integer(-1), rank = x.rank();
  if (x.dtype() != DType::f32) return Support::no("dtype must be f32, got {}", x.dtype());
  if (rank == 0 || (axis != -1 && axis != rank - 1))
    return Support::no("axis must be last, got {} of {}", axis, rank);
  int64_t rows = 1;
  for (int64_t d = 0; d < rank - 1; ++d) rows *= x.shape()[d].max();
  if (rows >= int64_t{1} << 31) return Support::no("rows must be below 2^31, got {}", rows);
  return Support::yes();
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  if (x.size() == 0) return Outcome::ok();
  const int64_t columns = x.dim(x.rank() - 1);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned>(x.size() / columns);
  config.blockDim = kThreads;
  config.stream = stream_of(l);
  config.attrs = &early;
  config.numAttrs = queue_of(l).device.dependent_launch ? 1 : 0;
  return outcome(cudaLaunchKernelEx(&config, softmax_rows, x.data<const float>(), y.data<float>(), columns),
                 "launching");
}

}  // namespace

std::span<const KernelRecord> softmax_kernels() {
  static const KernelRecord all[] = {{.op = "softmax",
                                      .variant = "block_per_row",
                                      .reads = {"axis"},
                                      .accepts = accepts,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda

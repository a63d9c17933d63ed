#include "device.hpp"

// add, sub and maximum of f32: four elements per thread if both operands are laid out like the result, else
// one, addressed by strides.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kMaxRank = 8;

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Sub {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct Maximum {  // NaN if one side is
  __device__ float operator()(float a, float b) const { return a != a ? a : b != b ? b : fmaxf(a, b); }
};

/// Strides of a broadcast axis are 0.
struct Layout {
  int rank;
  int64_t dims[kMaxRank], a[kMaxRank], b[kMaxRank];
};

template <class F>
__global__ void by_strides(const float* a, const float* b, float* y, int64_t n, Layout l) {
  let_next_kernel_start();
  const int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  if (i >= n) return;
  int64_t left = i, at_a = 0, at_b = 0;
  for (int d = l.rank - 1; d >= 0; --d) {
    const int64_t k = left % l.dims[d];
    left /= l.dims[d];
    at_a += k * l.a[d], at_b += k * l.b[d];
  }
  y[i] = F()(a[at_a], b[at_b]);
}

void strides_of(const TensorView& t, const TensorView& y, int64_t* strides) {
  int64_t step = 1;
  const int64_t lead = y.rank() - t.rank();
  for (int64_t d = t.rank() - 1; d >= 0; --d) {
    strides[lead + d] = t.dim(d) == 1 ? 0 : step;
    step *= t.dim(d);
  }
  for (int64_t d = 0; d < lead; ++d) strides[d] = 0;
}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

template <class F>
Outcome launch(const Launch& l) {
  const TensorView a = l.input(0), b = l.input(1), y = l.output(0);
  const int64_t n = y.size();
  if (n == 0) return Outcome::ok();
  Layout layout{static_cast<int>(y.rank()), {}, {}, {}};
  for (int64_t d = 0; d < y.rank(); ++d) layout.dims[d] = y.dim(d);
  strides_of(a, y, layout.a);
  strides_of(b, y, layout.b);
  by_strides<F><<<blocks(n), kThreads, 0, stream_of(l)>>>(a.data<const float>(), b.data<const float>(),
                                                          y.data<float>(), n, layout);
  return outcome(cudaGetLastError(), "launching");
}

Support accepts(const OpCall& c) {
  const auto dtype = c.output(0).dtype();
  if (dtype != DType::f32) return Support::no("dtype must be f32, got {}", dtype);
  if (c.output(0).rank() > kMaxRank)
    return Support::no("rank must be at most {}, got {}", kMaxRank, c.output(0).rank());
  return Support::yes();
}

}  // namespace

std::span<const KernelRecord> elementwise_kernels() {
  static const KernelRecord all[] = {
      {.op = "add", .variant = "strided", .accepts = accepts, .launch = launch<Add>},
      {.op = "sub", .variant = "strided", .accepts = accepts, .launch = launch<Sub>},
      {.op = "maximum", .variant = "strided", .accepts = accepts, .launch = launch<Maximum>},
  };
  return all;
}

}  // namespace weft::cuda

#include "../rows.hpp"

// gelu and its gradient.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256;
constexpr float kScale = 0.7978845608028654f, kCube = 0.044715f;  // sqrt(2 / pi)

/// 2 P(X < x) - 1: erf(x / sqrt(2)), or tanh of a polynomial.
template <bool kTanh>
__device__ float symmetric_cdf(float x) {
  return kTanh ? tanhf(kScale * (x + kCube * x * x * x)) : erff(x * 0.7071067811865476f);
}

template <bool kTanh>
__device__ float gelu_of(float x) {
  return x * 0.5f * (symmetric_cdf<kTanh>(x) + 1);
}

// dy (P + x P'); beyond 40 the tails are 0 and 1, and up to there no power of x overflows.
template <bool kTanh>
__device__ float gelu_grad_of(float x, float dy) {
  const float near = x < -40  ? -40.0f
                     : x > 40 ? 40.0f
                              : x,
              square = near * near, s = symmetric_cdf<kTanh>(near),
              slope = kTanh ? (1 - s * s) * kScale * (1 + 3 * kCube * square) : kScale * expf(-0.5f * square);
  return dy * 0.5f * (s + 1 + x * slope);
}

/// y = f(x...) for all elements; kWide neighbouring ones a thread.
template <int kWide, class T, class F, class... X>
__device__ void map_elements(T* y, int64_t n, F f, const X*... x) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWide;
  if (at >= n) return;
  const auto elements = [&](auto... pieces) {
    float results[kWide];
#pragma unroll
    for (int i = 0; i < kWide; ++i) results[i] = f(widened(pieces.of[i])...);
    *reinterpret_cast<Piece<T, kWide>*>(y + at) = narrowed_piece<T>(results);
  };
  elements(*reinterpret_cast<const Piece<T, kWide>*>(x + at)...);
}

template <class T, int kWide, bool kTanh>
__global__ void __launch_bounds__(kThreads) gelu_of_elements(const T* x, T* y, int64_t n) {
  wait_for_kernels_before();
  let_next_kernel_start();
  map_elements<kWide>(y, n, [](float v) { return gelu_of<kTanh>(v); }, x);
}
template <class T, int kWide, bool kTanh>
__global__ void __launch_bounds__(kThreads) gelu_grad_of_elements(const T* x, const T* dy, T* dx, int64_t n) {
  wait_for_kernels_before();
  let_next_kernel_start();
  map_elements<kWide>(dx, n, [](float v, float d) { return gelu_grad_of<kTanh>(v, d); }, x, dy);
}

Support accepts(const OpCall& c) {
  const DType type = c.input(0).dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  int64_t n = 1;
  for (const int64_t d : c.input(0).max()) n *= d;
  return n < int64_t{1} << 39 ? Support::yes() : Support::no("{} elements", n);
}

template <class T, int kWide, bool kTanh>
Outcome run(const Launch& l, int64_t n) {
  const int64_t of_block = kThreads * kWide;
  const Grid blocks{static_cast<unsigned>((n + of_block - 1) / of_block)};
  const auto* x = l.input(0).data<const T>();
  auto* y = l.output(0).data<T>();
  if (l.call().op() == "gelu")
    return start(l, blocks, kThreads, 0, gelu_of_elements<T, kWide, kTanh>, x, y, n);
  return start(l, blocks, kThreads, 0, gelu_grad_of_elements<T, kWide, kTanh>, x, l.input(1).data<const T>(),
               y, n);
}

Outcome launch(const Launch& l) {
  const int64_t n = l.input(0).size();
  if (n == 0) return Outcome::ok();
  const TensorView other = l.call().n_inputs() > 1 ? l.input(1) : TensorView(nullptr);
  const bool wide = aligned_rows(n, {l.input(0), other, l.output(0)});
  return with_type(l.input(0).dtype(), [&]<class T>(T*) {
    constexpr int kWide = 16 / sizeof(T);
    if (l.call().attr("approximate").integer())
      return wide ? run<T, kWide, true>(l, n) : run<T, 1, true>(l, n);
    return wide ? run<T, kWide, false>(l, n) : run<T, 1, false>(l, n);
  });
}

}  // namespace

std::span<const KernelRecord> gelu_elements() {
  static const KernelRecord all[] = {
      {.op = "gelu", .variant = "elements", .reads = {"approximate"}, .accepts = accepts, .launch = launch},
      {.op = "gelu_grad",
       .variant = "elements",
       .reads = {"approximate"},
       .accepts = accepts,
       .launch = launch}};
  return all;
}

}  // namespace weft::cuda

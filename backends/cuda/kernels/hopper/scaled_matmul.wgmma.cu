#include "../../hopper/multiprocessors.hpp"
#include "../../hopper/scaled_call.hpp"

// Products of 8-bit numbers with scales on the tensor cores of architecture 9.0 (hopper/scaled_kernel.hpp).
// Floats: by those of 16 bits, whose sums are within the bound of f32, or, where the caller allows the
// precision of bf16, by those of 8 bits. Integers: by those of 8 bits, whose sums are exact.
namespace weft::cuda {

using namespace backend;
using hopper::ScaledCall, hopper::multiprocessors;

namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;     // along an axis: coordinates of tiles are int
constexpr int64_t kTermsOfIntegers = int64_t{1} << 17;  // of (-128)^2: the first sum that 32 bits don't hold
constexpr uint64_t kAlignment = 16;

/// The sizes of a call, or why it is refused.
Support sizes_of(const OpCall& c, ScaledCall& call) {
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    for (int64_t d = 0; c.input(i).has() && d < c.input(i).rank(); ++d)
      if (const Dim size = c.input(i).shape()[d]; !size.known())
        return Support::no("an operand has sizes from {} to {}", size.min(), size.max());
  call.a_type = c.input(0).dtype(), call.b_type = c.input(1).dtype(), call.c_type = c.output(0).dtype();
  call.n = c.input(1).max()[0], call.k = c.input(1).max()[1], call.m = 1;
  for (const int64_t rows : c.output(0).max()) call.m *= rows;
  if (call.m == 0 || call.k == 0) return Support::no("there is nothing to multiply");
  call.m /= call.n;
  call.each_a = c.input(2).rank() > 0, call.each_b = c.input(3).rank() > 0;
  // Results are stored by 16 bytes.
  if (call.n % 8) return Support::no("rows of {} results, wanted a multiple of 8", call.n);
  if (call.m >= kMostElements || call.n >= kMostElements || call.k >= kMostElements ||
      (call.m + 127) / 128 * ((call.n + 127) / 128) >= kMostElements ||
      (call.m + call.n) * call.wide_k() >= int64_t{1} << 39)
    return Support::no("{} x {} x {}", call.m, call.n, call.k);
  return Support::yes();
}

Support accepts_any(const OpCall& c) {
  if (multiprocessors() == 0) return Support::no("wants GPUs of architecture 9.0 and of one size");
  ScaledCall unused;
  return sizes_of(c, unused);
}
Support copied_as_they_are(const OpCall& c) {
  const int64_t k = c.input(1).max()[1];
  if (k % 16) return Support::no("rows of {} elements, wanted a multiple of 16", k);
  return Support::yes();
}
Support accepts_wide(const OpCall& c) {
  if (c.input(0).dtype() == DType::i8) return Support::no("multiplies floats");
  return accepts_any(c);
}
Support accepts_narrow(const OpCall& c) {
  if (c.precision() < WEFT_PRECISION_BF16)
    return Support::no("its sums keep 14 bits: wants a policy that allows the precision of bf16");
  if (auto wide = accepts_wide(c); !wide) return wide;
  return copied_as_they_are(c);
}
Support accepts_integers(const OpCall& c) {
  if (c.input(0).dtype() != DType::i8) return Support::no("multiplies i8, got {}", c.input(0).dtype());
  if (auto any = accepts_any(c); !any) return any;
  if (const int64_t k = c.input(1).max()[1]; k >= kTermsOfIntegers)
    return Support::no("sums of {} products may be more than i32 holds; wants fewer than {}", k,
                       kTermsOfIntegers);
  return copied_as_they_are(c);
}

Outcome prepare_wide(const OpCall& c, weft_plan& plan) {
  ScaledCall call;
  if (const auto s = sizes_of(c, call); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  plan.workspace = static_cast<uint64_t>((call.m + call.n) * call.wide_k()) * sizeof(uint16_t) + kAlignment;
  return Outcome::ok();
}
Outcome prepare_narrow(const OpCall&, weft_plan& plan) {
  plan.precision = WEFT_PRECISION_BF16;
  return Outcome::ok();
}

/// The same product where an operand begins within 16 bytes: an element a thread, and slow.
template <class C>
__global__ void __launch_bounds__(256) scaled_elements(const __grid_constant__ ScaledCall call) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t at = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (at >= call.m * call.n) return;
  const int64_t m = at / call.n, n = at % call.n;
  const uint8_t *const a = call.a + m * call.k, *const b = call.b + n * call.k;
  float sum = 0;
  if (call.a_type == DType::i8) {
    int whole = 0;
    for (int64_t k = 0; k < call.k; ++k) whole += static_cast<int8_t>(a[k]) * static_cast<int8_t>(b[k]);
    sum = static_cast<float>(whole);
  } else {
    for (int64_t k = 0; k < call.k; ++k)
      sum += hopper::float_of_8(a[k], call.a_type == DType::f8e5m2) *
             hopper::float_of_8(b[k], call.b_type == DType::f8e5m2);
  }
  sum = sum * call.a_scale[call.each_a ? m : 0] * call.b_scale[call.each_b ? n : 0];
  if (call.bias) sum += widened(static_cast<const C*>(call.bias)[n]);
  static_cast<C*>(call.c)[at] = narrowed<C>(sum);
}

template <class C, bool narrow>
Outcome run(const Launch& l, const ScaledCall& call) {
  const auto started = [&](unsigned blocks, unsigned threads, uint32_t shared, auto* kernel,
                           const auto&... arguments) {
    return start(l, Grid{blocks}, threads, shared, kernel, arguments...);
  };
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  const uintptr_t copied = narrow ? at(call.a) | at(call.b) : 0;  // `widen` reads from anywhere
  if ((copied | at(call.c) | at(call.bias)) % kAlignment)
    return started(static_cast<unsigned>(hopper::divided_up(call.m * call.n, 256)), 256u, 0u,
                   scaled_elements<C>, call);
  int* const counters = queue_of(l).counters();
  if constexpr (narrow) return hopper::run_narrow<C>(call, counters, multiprocessors(), started);
  const uintptr_t space = (at(l.workspace().data()) + kAlignment - 1) / kAlignment * kAlignment;
  return hopper::run_wide<C>(call, reinterpret_cast<uint16_t*>(space), counters, multiprocessors(), started);
}

template <bool narrow>
Outcome launch(const Launch& l) {
  ScaledCall call;
  if (const auto s = sizes_of(l.call(), call); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  call.a = l.input(0).data<const uint8_t>(), call.b = l.input(1).data<const uint8_t>();
  call.a_scale = l.input(2).data<const float>(), call.b_scale = l.input(3).data<const float>();
  call.bias = l.call().input(4).has() ? l.input(4).data() : nullptr;
  call.c = l.output(0).data();
  call.stream = queue_of(l).stream;
  switch (call.c_type) {
    case DType::f32: return run<float, narrow>(l, call);
    case DType::f16: return run<f16, narrow>(l, call);
    default: return run<bf16, narrow>(l, call);
  }
}

}  // namespace

std::span<const KernelRecord> scaled_matmul_wgmma() {
  static const KernelRecord all[] = {{.op = "scaled_matmul",
                                      .variant = "wgmma",
                                      .reads = {"dtype"},
                                      .accepts = accepts_wide,
                                      .prepare = prepare_wide,
                                      .launch = launch<false>,
                                      .determinism = WEFT_DETERMINISM_THREADS},
                                     {.op = "scaled_matmul",
                                      .variant = "wgmma8",
                                      .reads = {"dtype"},
                                      .accepts = accepts_narrow,
                                      .prepare = prepare_narrow,
                                      .launch = launch<true>,
                                      .determinism = WEFT_DETERMINISM_THREADS,
                                      .rank = 1},
                                     {.op = "scaled_matmul",
                                      .variant = "wgmma_i8",
                                      .reads = {"dtype"},
                                      .accepts = accepts_integers,
                                      .launch = launch<true>,
                                      .determinism = WEFT_DETERMINISM_THREADS,
                                      .rank = 2}};
  return all;
}

}  // namespace weft::cuda

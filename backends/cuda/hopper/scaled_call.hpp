#pragma once
#include "matmul_call.hpp"
#include "scaled_kernel.hpp"
#include "scaled_widen.hpp"

// From a product of 8-bit numbers to launches: a and b as they are, or floats widened to f16 first.
namespace weft::cuda::hopper {

/// c [m, n] = a [m, k] b [n, k]ᵀ with scales and bias.
struct ScaledCall {
  int64_t m = 0, n = 0, k = 0;
  DType a_type = DType::f8e4m3, b_type = DType::f8e4m3, c_type = DType::f32;
  bool each_a = false, each_b = false;  ///< a scale for each row
  const uint8_t *a = nullptr, *b = nullptr;
  const float *a_scale = nullptr, *b_scale = nullptr;
  const void* bias = nullptr;  ///< null, or n of the result's type
  void* c = nullptr;
  cudaStream_t stream = nullptr;  ///< of the launch
  /// Of k, with the zeros behind each widened row.
  int64_t wide_k() const { return divided_up(k, 16) * 16; }
};

/// The product that `call` is for the tensor cores, of these operands, which are of 8 bits or f16.
inline MatmulCall product_of(const ScaledCall& call, const void* a, const void* b, bool wide) {
  MatmulCall product{.m = call.m, .n = call.n, .k = wide ? call.wide_k() : call.k};
  product.transpose_b = true;
  product.dtype = wide ? DType::f16 : DType::f8e4m3;
  product.a = a, product.b = b, product.bias = call.bias, product.c = call.c, product.stream = call.stream;
  return product;
}

/// `start(blocks, threads, shared bytes, kernel, arguments...)` launches.
template <class A, class B, class C, class Start>
backend::Outcome run_scaled(const ScaledCall& call, const MatmulCall& product, int multiprocessors,
                            Start&& start) {
  MatmulMaps maps{};
  if (auto made = make_maps<ScaledTiles>(product, &maps); !made.good()) return made;
  if (sizeof(C) == 2)
    if (auto made = make_store_maps(product, call.c_type, &maps); !made.good()) return made;
  const ScaledTask task{
      task_of<ScaledTiles>(product), call.a_scale, call.b_scale, call.each_a, call.each_b,
  };
  const int64_t blocks = std::min<int64_t>(tiles_of<ScaledTiles>(product), multiprocessors);
  return start(static_cast<unsigned>(blocks), unsigned{kMatmulThreads}, shared_bytes<ScaledTiles>(),
               scaled_tiles<A, B, C, ScaledTiles>, maps, task);
}

/// f(type) with the 8-bit type's own.
template <class F>
auto with_type8(DType t, F f) {
  return t == DType::f8e4m3 ? f(e4m3{}) : f(e5m2{});
}

/// By the 8-bit tensor cores. Rows of a and b are multiples of 16 bytes and begin at such.
template <class C, class Start>
backend::Outcome run_narrow(const ScaledCall& call, int* counters, int multiprocessors, Start&& start) {
  MatmulCall product = product_of(call, call.a, call.b, false);
  product.counters = counters;
  if (call.a_type == DType::i8) return run_scaled<int8_t, int8_t, C>(call, product, multiprocessors, start);
  return with_type8(call.a_type, [&](auto a) {
    return with_type8(call.b_type, [&](auto b) {
      return run_scaled<decltype(a), decltype(b), C>(call, product, multiprocessors, start);
    });
  });
}

/// By the 16-bit tensor cores. `space`: f16 of (m + n) wide_k, aligned to 16 bytes.
template <class C, class Start>
backend::Outcome run_wide(const ScaledCall& call, uint16_t* space, int* counters, int multiprocessors,
                          Start&& start) {
  uint16_t* const wide_b = space + call.m * call.wide_k();
  const WidenTask task{{{call.a, space, call.m, call.a_type == DType::f8e5m2},
                        {call.b, wide_b, call.n, call.b_type == DType::f8e5m2}},
                       static_cast<int>(call.k),
                       static_cast<int>(call.wide_k() / 16)};
  const int64_t blocks = divided_up((call.m + call.n) * task.pieces, 256);
  if (auto started = start(static_cast<unsigned>(blocks), 256u, 0u, widen, task); !started.good())
    return started;
  MatmulCall product = product_of(call, space, wide_b, true);
  product.counters = counters;
  return run_scaled<f16, f16, C>(call, product, multiprocessors, start);
}

}  // namespace weft::cuda::hopper

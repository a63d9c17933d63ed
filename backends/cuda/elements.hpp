#pragma once
#include "collect.hpp"
#include "rows.hpp"

// How the threads of a block take their share of a tensor's elements, and which tensors are taken.
namespace weft::cuda {

/// Neighbouring elements in f32.
template <int n, class T>
__device__ void read(float (&to)[n], const T* at) {
  const auto piece = *reinterpret_cast<const Piece<T, n>*>(at);
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] = widened(piece.of[i]);
}
template <int n, class T>
__device__ void write(T* at, const float (&x)[n]) {
  *reinterpret_cast<Piece<T, n>*>(at) = narrowed_piece<T>(x);
}

/// f<n>(i) for the elements of a block's share, n neighbours at a time where all of these operands are
/// aligned.
template <class F, class... P>
__device__ void each_element(int64_t begin, int64_t end, F f, const P*... operands) {
  constexpr int kWide = 4;
  const auto thread = static_cast<int64_t>(threadIdx.x);
  const bool aligned = ((reinterpret_cast<uintptr_t>(operands) % (kWide * sizeof(P)) == 0) && ...);
  const int64_t pieces = aligned ? (end - begin) / kWide : 0;
#pragma unroll 4
  for (int64_t i = thread; i < pieces; i += 256) f.template operator()<kWide>(begin + i * kWide);
#pragma unroll 4
  for (int64_t i = begin + pieces * kWide + thread; i < end; i += 256) f.template operator()<1>(i);
}

inline backend::Support float_type(DType type) {
  if (type == DType::f32 || type == DType::f16 || type == DType::bf16) return backend::Support::yes();
  return backend::Support::no("computes on f32, f16 and bf16, got {}", type);
}
inline backend::Support few_elements(backend::TypeView t) {
  int64_t n = 1;
  for (const int64_t d : t.max()) n *= d;
  return n < int64_t{1} << 40 ? backend::Support::yes() : backend::Support::no("{} elements", n);
}

}  // namespace weft::cuda

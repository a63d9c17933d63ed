#pragma once
#include "kernel.hpp"

// Elements of a row as they lie in registers.
namespace weft::cuda {

/// 16 bytes of elements: pieces of 16-bit ones would be held as halves of registers.
struct __attribute__((may_alias, aligned(16))) Words {
  uint32_t of[4];
};
template <class T>
__device__ void widen(const Words& all, float (&to)[16 / sizeof(T)]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if constexpr (sizeof(T) == 2)
      unpack<T>(all.of[i], to[2 * i], to[2 * i + 1]);
    else
      to[i] = as_float(all.of[i]);
}
template <class T>
__device__ Words words_of(const float (&x)[16 / sizeof(T)]) {
  Words all;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if constexpr (sizeof(T) == 2)
      all.of[i] = packed<T>(x[2 * i], x[2 * i + 1]);
    else
      all.of[i] = as_bits(x[i]);
  return all;
}
/// Equal elements, which `x` is exactly.
template <class T>
__device__ Words words_of_one(float x) {
  float all[16 / sizeof(T)];
#pragma unroll
  for (float& each : all) each = x;
  return words_of<T>(all);
}

}  // namespace weft::cuda

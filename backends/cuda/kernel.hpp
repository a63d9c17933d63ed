#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "weft/backend.hpp"

// The language of kernels: CUDA C++, and below the few names for what differs between GPUs. The emulated
// backend defines the same names for a CPU, so that kernels are tested where there is no GPU.
#ifdef WEFT_EMULATED
#include "../emulated/language.hpp"
#elif defined(__HIP__)
#include "../hip/language.hpp"
#else
#include "language.hpp"
#endif

namespace weft::cuda {

using backend::Outcome;

/// 16-bit floats as they lie in memory.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

__device__ inline float as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
__device__ inline uint32_t as_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/// Elements are computed on in f32. Rounds to nearest even.
__device__ inline float widened(float x) { return x; }
__device__ inline float widened(f16 x) { return float_of_half(x.bits); }
__device__ inline float widened(bf16 x) { return as_float(uint32_t{x.bits} << 16); }
/// The halves of a register, the lower one first.
template <class T>
__device__ void unpack(uint32_t pair, float& low, float& high) {
  low = widened(T{static_cast<uint16_t>(pair)}), high = widened(T{static_cast<uint16_t>(pair >> 16)});
}
template <>
__device__ inline void unpack<bf16>(uint32_t pair, float& low, float& high) {
  low = as_float(pair << 16), high = as_float(pair & 0xffff0000u);
}
template <class T>
__device__ T narrowed(float x);
template <>
__device__ inline float narrowed<float>(float x) {
  return x;
}
template <>
__device__ inline f16 narrowed<f16>(float x) {
  return {half_of_float(x)};
}
template <>
__device__ inline bf16 narrowed<bf16>(float x) {
  return {bfloat_of_float(x)};
}
/// Two elements as the halves of a register, the first one below.
template <class T>
__device__ uint32_t packed(float low, float high);
template <>
__device__ inline uint32_t packed<f16>(float low, float high) {
  return halves_of_floats(low, high);
}
template <>
__device__ inline uint32_t packed<bf16>(float low, float high) {
  return bfloats_of_floats(low, high);
}

/// A pair of 16-bit floats with 0 in the place of what is not finite.
template <class T>
__device__ inline uint32_t finite_of(uint32_t pair) {
  constexpr uint32_t kExponent = std::is_same_v<T, bf16> ? 0x7f807f80u : 0x7c007c00u,
                     kLowest = std::is_same_v<T, bf16> ? 0x00800080u : 0x04000400u;
  // An exponent of ones, and only that, carries into its half's highest bit.
  const uint32_t found = ((pair & kExponent) + kLowest) & 0x80008000u;
  return pair & ~((found >> 15) * 0xffffu);
}
template <class T, int n>
__device__ inline void finite_of(uint32_t (&to)[n], const uint32_t (&from)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] = finite_of<T>(from[i]);
}

/// exp(x) for results of type T: halves hold fewer digits than fast_exp loses.
template <class T>
__device__ float exp_for(float x) {
  return fast_exp(x);
}
template <>
__device__ inline float exp_for<float>(float x) {
  return expf(x);
}

/// The largest or the sum over groups of `n` neighbouring lanes, in each of them. n is a power of two.
template <int n>
__device__ inline float largest_of(float x) {
  for (int m = n / 2; m > 0; m /= 2) x = fmaxf(x, shuffle_xor(x, m));
  return x;
}
template <int n>
__device__ inline float sum_of(float x) {
  for (int m = n / 2; m > 0; m /= 2) x += shuffle_xor(x, m);
  return x;
}

}  // namespace weft::cuda

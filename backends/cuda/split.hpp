#pragma once
#include "kernel.hpp"

// An f32 as three bf16, so that the units that multiply 16-bit matrices multiply f32:
//
//   x = p0 + p1 2^-8 + p2 2^-16, exactly
//
// p0 is x rounded to bf16, which has 8 bits, p1 what that leaves, rounded, and p2 the rest, which has no more
// than 8 bits. That they are scaled keeps them exact down to the smallest f32: the exponents of bf16 are
// those of f32. Of the nine products of parts six are computed, in groups that have one scale:
//
//   2^-16 (p0 q2 + p1 q1 + p2 q0),  2^-8 (p0 q1 + p1 q0),  p0 q0
//
// The others, p1 q2, p2 q1 and p2 q2, are at most 2^-24 of |x y| together: |p1| and |p2| are at most half a
// unit of the last place of p0 and p1. The scaled sums of a group are at most twice the sum of all |x y|, so
// that only sums within a factor of 2 of the largest f32 may overflow on the way.
//
// What is not finite is in p0 alone, and there only in the product p0 q0: elsewhere it would meet parts that
// are 0 or have the other sign. Those products take 0 in its place.
namespace weft::cuda {

inline constexpr int kSplitParts = 3;
inline constexpr float kSplitScale = 256;  // from a part to the next

/// The parts of two neighbouring numbers, each in a half of a register.
struct SplitPair {
  uint32_t part[kSplitParts];
};

/// For numbers that round to finite bf16. Of others the parts are meaningless, and `nan_if_not` becomes NaN,
/// which is 0 to begin with.
__device__ inline void split_finite(SplitPair& to, float low, float high, float& nan_if_not) {
#pragma unroll
  for (int i = 0; i < kSplitParts; ++i) {
    const uint32_t pair = to.part[i] = packed<bf16>(low, high);
    if (i + 1 == kSplitParts) break;
    low -= as_float(pair << 16), high -= as_float(pair & 0xffff0000u);
    if (i == 0) nan_if_not = fmaf(0, low, fmaf(0, high, nan_if_not));
    low *= kSplitScale, high *= kSplitScale;
  }
}
/// The same, and whether they do.
__device__ inline bool split_finite(SplitPair& to, float low, float high) {
  float nan_if_not = 0;
  split_finite(to, low, high, nan_if_not);
  return nan_if_not == 0;
}

inline constexpr uint32_t kLargestBf16 = 0x7f7f;
__device__ inline bool is_finite(float x) { return (as_bits(x) & 0x7fffffffu) < 0x7f800000u; }

/// p0 of any number, and p1 and p2, which are 0 for those that are not finite. What is finite has finite
/// parts.
__device__ inline void split_any(uint16_t (&to)[kSplitParts], float x) {
  for (uint16_t& part : to) part = 0;
  if (!is_finite(x)) {
    to[0] = static_cast<uint16_t>(packed<bf16>(x, 0));
    return;
  }
  const float largest = as_float(kLargestBf16 << 16);
  for (int i = 0; i < kSplitParts; ++i) {
    const float inside = fminf(fmaxf(x, -largest), largest);
    to[i] = static_cast<uint16_t>(packed<bf16>(inside, 0));
    x = (x - as_float(uint32_t{to[i]} << 16)) * kSplitScale;
  }
}
__device__ inline void split_any(SplitPair& to, float low, float high) {
  uint16_t of_low[kSplitParts], of_high[kSplitParts];
  split_any(of_low, low), split_any(of_high, high);
  for (int i = 0; i < kSplitParts; ++i) to.part[i] = uint32_t{of_low[i]} | uint32_t{of_high[i]} << 16;
}

}  // namespace weft::cuda

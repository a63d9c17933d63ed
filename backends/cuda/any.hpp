#pragma once

// For languages that have no such instruction; included behind their own names.
namespace weft::cuda {

/// Whether it is true in any thread of the warp.
__device__ inline bool any_of_warp(bool x) {
  int any = x;
  for (int m = 16; m > 0; m /= 2) any |= shuffle_xor(any, m);
  return any != 0;
}
/// A sync_block that tells whether it is true in any thread of the block.
__device__ inline bool any_of_block(bool x) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  sync_block();
  if (x) any = 1;
  sync_block();
  const bool found = any;
  sync_block();  // before the next one begins
  return found;
}

/// The larger ones of the halves of two registers, 16-bit floats each; of a NaN and another, the other.
template <class T>
__device__ uint32_t larger_halves(uint32_t a, uint32_t b) {
  const auto larger = [](uint32_t x, uint32_t y) {
    const float of_x = widened(T{static_cast<uint16_t>(x)}), of_y = widened(T{static_cast<uint16_t>(y)});
    return (of_x > of_y || of_y != of_y ? x : y) & 0xffffu;
  };
  return larger(a, b) | larger(a >> 16, b >> 16) << 16;
}

}  // namespace weft::cuda

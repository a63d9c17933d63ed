#pragma once
#include "../kernel.hpp"

// 8-bit floats as f16, which holds each of them.
namespace weft::cuda::hopper {

/// Two neighbours, the first one below, as halves of a register.
__device__ inline uint32_t halves_of(uint16_t pair, bool is_e5m2) {
  uint32_t halves;
  if (is_e5m2)
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
  else
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  return halves;
}
__device__ inline float float_of_8(uint8_t bits, bool is_e5m2) {
  return float_of_half(static_cast<uint16_t>(halves_of(bits, is_e5m2)));
}

/// Two matrices of rows of k, which become rows of 16 `pieces`: behind k are zeros.
struct WidenTask {
  struct Matrix {
    const uint8_t* from;
    uint16_t* to;
    int64_t rows;
    bool is_e5m2;
  } matrices[2];
  int k, pieces;
};

/// A thread widens 16 elements of a row.
__global__ void __launch_bounds__(256) widen(const __grid_constant__ WidenTask task) {
  wait_for_kernels_before();
  let_next_kernel_start();
  int64_t at = int64_t{blockIdx.x} * 256 + threadIdx.x;
  const int64_t of_first = task.matrices[0].rows * task.pieces;
  const WidenTask::Matrix& m = task.matrices[at >= of_first];
  if (at >= of_first) at -= of_first;
  if (at >= m.rows * task.pieces) return;
  const int first = static_cast<int>(at % task.pieces) * 16;
  const uint8_t* const from = m.from + at / task.pieces * task.k + first;
  uint32_t four[4] = {};
  if (reinterpret_cast<uintptr_t>(from) % 16 == 0 && first + 16 <= task.k) {
    const uint4 read = *reinterpret_cast<const uint4*>(from);
    four[0] = read.x, four[1] = read.y, four[2] = read.z, four[3] = read.w;
  } else {
    for (int i = 0; i < 16; ++i)
      if (first + i < task.k) four[i / 4] |= uint32_t{from[i]} << (8 * (i % 4));
  }
  uint32_t wide[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    wide[i] = halves_of(static_cast<uint16_t>(four[i / 2] >> (16 * (i % 2))), m.is_e5m2);
  uint4* const to = reinterpret_cast<uint4*>(m.to + at * 16);
  to[0] = {wide[0], wide[1], wide[2], wide[3]};
  to[1] = {wide[4], wide[5], wide[6], wide[7]};
}

}  // namespace weft::cuda::hopper

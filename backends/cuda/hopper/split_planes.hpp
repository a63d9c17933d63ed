#pragma once
#include "../split.hpp"

// The parts of an f32 matrix as matrices of bf16, which products of tensor cores read.
namespace weft::cuda {

inline constexpr int kPlaneThreads = 256, kPlanePiece = 8;  // numbers of a thread, 16 bytes of each plane

/// Rows of `columns` numbers without gaps, to planes whose rows have `stride`, a multiple of kPlanePiece.
/// Plane 0 has part 0, plane 1 the same with 0 for what is not finite, then come the other parts.
static __global__ void __launch_bounds__(kPlaneThreads)
    split_planes(const float* from, uint16_t* to, int64_t rows, int columns, int stride) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t piece = int64_t{blockIdx.x} * kPlaneThreads + threadIdx.x, of_row = stride / kPlanePiece;
  const int64_t row = piece / of_row;
  if (row >= rows) return;
  const int column = static_cast<int>(piece % of_row) * kPlanePiece;
  float x[kPlanePiece];
  const float* const at = from + row * columns + column;
  if (columns % 4 == 0 && column + kPlanePiece <= columns) {
    for (int i = 0; i < kPlanePiece; i += 4) {
      const auto four = *reinterpret_cast<const float4*>(at + i);
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
  } else {
    for (int i = 0; i < kPlanePiece; ++i) x[i] = column + i < columns ? at[i] : 0;
  }
  constexpr int kWords = kPlanePiece / 2;
  uint32_t planes[1 + kSplitParts][kWords];
  for (int i = 0; i < kWords; ++i) {
    SplitPair split;
    if (!split_finite(split, x[2 * i], x[2 * i + 1])) split_any(split, x[2 * i], x[2 * i + 1]);
    planes[0][i] = split.part[0], planes[1][i] = finite_of<bf16>(split.part[0]);
    planes[2][i] = split.part[1], planes[3][i] = split.part[2];
  }
  for (int p = 0; p < 1 + kSplitParts; ++p) {
    uint4 words{planes[p][0], planes[p][1], planes[p][2], planes[p][3]};
    *reinterpret_cast<uint4*>(to + (p * rows + row) * stride + column) = words;
  }
}

}  // namespace weft::cuda

#include "../shares.hpp"

// Sums over the first axes, as gradients of biases are: a warp takes 32 pieces of neighbouring columns, and
// every n-th row of them.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kMostBlocks = 528;

template <class T, int kWide>
__global__ void __launch_bounds__(kThreads)
    column_sums(const T* x, float* shares, int64_t rows, int columns) {
  __shared__ float of_warps[kWarps][32 * kWide];
  wait_for_kernels_before();
  let_next_kernel_start();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32,
            column = (static_cast<int>(blockIdx.x) * 32 + lane) * kWide;
  float sums[kWide] = {};
  if (column < columns) {
#pragma unroll 4
    for (int64_t r = int64_t{blockIdx.y} * kWarps + warp; r < rows; r += int64_t{gridDim.y} * kWarps) {
      const auto piece = *reinterpret_cast<const Piece<T, kWide>*>(x + r * columns + column);
#pragma unroll
      for (int i = 0; i < kWide; ++i) sums[i] += widened(piece.of[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kWide; ++i) of_warps[warp][lane * kWide + i] = sums[i];
  sync_block();
  for (int i = static_cast<int>(threadIdx.x); i < 32 * kWide; i += kThreads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += of_warps[w][i];
    const int at = static_cast<int>(blockIdx.x) * 32 * kWide + i;
    if (at < columns) shares[int64_t{blockIdx.y} * columns + at] = sum;
  }
}

struct SumSizes {
  int64_t rows = 1, columns = 1;
};
/// The first `folded` axes are rows.
SumSizes sum_sizes(std::span<const int64_t> x, size_t folded) {
  SumSizes s;
  for (size_t d = 0; d < x.size(); ++d) (d < folded ? s.rows : s.columns) *= x[d];
  return s;
}

int64_t shares_of(const SumSizes& s, int wide) {
  const int64_t tiles = (s.columns + 32 * wide - 1) / (32 * wide);
  return std::clamp<int64_t>(s.rows / (4 * kWarps), 1, std::max<int64_t>(kMostBlocks / tiles, 1));
}

Support accepts(const OpCall& c) {
  const auto x = c.input(0);
  const DType type = x.dtype();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return Support::no("computes on f32, f16 and bf16, got {}", type);
  const auto axes = c.attr("axes").ints();
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return Support::no("folds the first axes, got {}", axes);
  if (axes.empty() || static_cast<int64_t>(axes.size()) >= x.rank())
    return Support::no("folds the first axes, got {} of {}", axes, x.rank());
  const SumSizes s = sum_sizes(x.max(), axes.size());
  if (s.columns < 32 || s.rows < 32) return Support::no("too small: {} rows of {}", s.rows, s.columns);
  if (s.columns >= int64_t{1} << 24) return Support::no("columns must be below 2^24, got {}", s.columns);
  return Support::yes();
}

// For these sizes and all smaller ones: more than one share of a column only up to kMostBlocks in all.
Outcome prepare(const OpCall& c, weft_plan& plan) {
  const SumSizes s = sum_sizes(c.input(0).max(), c.attr("axes").ints().size());
  plan.workspace = static_cast<uint64_t>(std::max<int64_t>(kMostBlocks * 32 * 8, s.columns)) * sizeof(float);
  return Outcome::ok();
}

template <class T, int kWide>
Outcome run(const Launch& l, const SumSizes& s) {
  const auto shares = static_cast<unsigned>(shares_of(s, kWide));
  const auto columns = static_cast<int>(s.columns);
  auto* const sums = l.workspace().data<float>();
  const Grid blocks{static_cast<unsigned>((columns + 32 * kWide - 1) / (32 * kWide)), shares};
  auto told =
      start(l, blocks, kThreads, 0, column_sums<T, kWide>, l.input(0).data<const T>(), sums, s.rows, columns);
  if (!told.good()) return told;
  return start_sum_of_shares(l, sums, l.output(0).data<T>(), static_cast<int>(shares), columns, s.columns);
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0);
  const SumSizes s = sum_sizes(x.dims(), l.call().attr("axes").ints().size());
  if (s.columns == 0) return Outcome::ok();
  return with_type(x.dtype(), [&]<class T>(T*) {
    return aligned_rows(s.columns, {x}) ? run<T, 16 / sizeof(T)>(l, s) : run<T, 1>(l, s);
  });
}

}  // namespace

std::span<const KernelRecord> sum_columns() {
  static const KernelRecord all[] = {{.op = "sum",
                                      .variant = "columns",
                                      .reads = {"axes", "keep"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .launch = launch}};
  return all;
}

}  // namespace weft::cuda

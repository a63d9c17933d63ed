#include "../rows.hpp"

// Rows of a table: a warp copies one, 16 bytes a thread. Of an index outside the table, as of compiled text,
// comes NaN. The gradient is scatter_add.rows.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

/// A table [rows, pieces], and the results' rows, `count` of them.
struct Table {
  const void* of_results;  // indices
  bool wide;               // 64-bit
  int64_t rows, count;
  int pieces;  // of a row

  /// The row of result i; -1 if the table has none such.
  __device__ int64_t row(int64_t i) const {
    const int64_t r =
        wide ? static_cast<const int64_t*>(of_results)[i] : static_cast<const int32_t*>(of_results)[i];
    return r >= 0 && r < rows ? r : -1;
  }
};

template <class T, int kWide>
__global__ void __launch_bounds__(kThreads)
    rows_of_table(const Piece<T, kWide>* x, Piece<T, kWide>* y, Table table) {
  wait_for_kernels_before();
  let_next_kernel_start();
  const int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (i >= table.count) return;
  const int64_t row = table.row(i);
  const Piece<T, kWide>* const from = x + row * table.pieces;
  Piece<T, kWide>* const to = y + i * table.pieces;
  Piece<T, kWide> none;
#pragma unroll
  for (int k = 0; k < kWide; ++k) none.of[k] = narrowed<T>(NAN);
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x) % 32; p < table.pieces; p += 32)
    to[p] = row < 0 ? none : from[p];
}

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Support accepts(const OpCall& c) {
  const TypeView x = c.input(0), index = c.input(1);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f16 && x.dtype() != DType::bf16)
    return Support::no("copies f32, f16 and bf16, got {}", x.dtype());
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    return Support::no("indices must be i32 or i64, got {}", index.dtype());
  if (x.rank() == 0) return Support::no("wants rows, got a single element");
  if (elements(x.max().subspan(1)) >= int64_t{1} << 30)
    return Support::no("rows must be below 2^30 elements");
  if (elements(index.max()) >= int64_t{1} << 31) return Support::no("indices must be below 2^31");
  return Support::yes();
}

Outcome launch(const Launch& l) {
  const TensorView x = l.input(0), index = l.input(1), y = l.output(0);
  if (y.size() == 0) return Outcome::ok();
  const int64_t columns = elements(x.dims().subspan(1));
  return with_type(x.dtype(), [&]<class T>(T*) {
    const auto run = [&]<int kWide>(std::integral_constant<int, kWide>) {
      using P = Piece<T, kWide>;
      const Table table{index.data(), index.dtype() == DType::i64, x.dim(0), index.size(),
                        static_cast<int>(columns / kWide)};
      const Grid grid{static_cast<unsigned>((table.count + kWarps - 1) / kWarps)};
      return start(l, grid, kThreads, 0, rows_of_table<T, kWide>, static_cast<const P*>(x.data<const void>()),
                   static_cast<P*>(y.data<void>()), table);
    };
    if (aligned_rows(columns, {x, y})) return run(std::integral_constant<int, 16 / sizeof(T)>());
    return run(std::integral_constant<int, 1>());
  });
}

}  // namespace

std::span<const KernelRecord> embedding_rows() {
  static const KernelRecord all[] = {
      {.op = "embedding", .variant = "rows", .reads = {"padding_idx"}, .accepts = accepts, .launch = launch}};
  return all;
}

}  // namespace weft::cuda

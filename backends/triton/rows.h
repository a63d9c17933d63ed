#pragma once
#include "cubin.h"

// Kernels of rows: a program each, which holds it whole.
namespace weft::cubins {

inline constexpr int64_t kLongestRow = 16384;

/// The variant for rows of so many columns of `op`.
inline std::string row_kernel(const char* op, DType dtype, int64_t columns) {
  return backend::format("{}_{}_{}", op, name_of(dtype),
                         columns <= 1024   ? 1024
                         : columns <= 4096 ? 4096
                                           : 16384);
}

/// Rows of the last axis of input 0.
inline backend::Support takes_rows(const backend::OpCall& c, const char* op) {
  using backend::Support;
  if (auto s = takes_sizes(c); !s) return s;
  const backend::TypeView x = c.input(0);
  if (!name_of(x.dtype())) return Support::no("computes on f32, f16 and bf16, got {}", x.dtype());
  if (x.rank() < 1 || x.max().back() > kLongestRow)
    return Support::no("rows of at most {}, got {}", kLongestRow, x.max());
  return there(row_kernel(op, x.dtype(), x.max().back()));
}

struct RowLaunch {
  const Kernel* kernel = nullptr;
  dim3 rows;
  int columns = 0;
  std::string why;
};
inline RowLaunch row_launch(const backend::Launch& l, const char* op) {
  const backend::TensorView x = l.input(0);
  RowLaunch r;
  r.columns = static_cast<int>(x.dim(x.rank() - 1));
  r.rows = dim3(static_cast<unsigned>(x.size() / r.columns));
  r.kernel = kernel_for(l, row_kernel(op, x.dtype(), r.columns), r.columns % 16 == 0, r.why);
  return r;
}

}  // namespace weft::cubins

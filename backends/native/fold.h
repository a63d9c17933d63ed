#pragma once
#include "backends/native/row_launch.h"
#include "weft/shared/ops/reduce.hpp"

// Folds of f32 whose axes merge into one kept and one folded axis: rows (the folded axis is innermost) or
// columns.
namespace weft::native {

using shared::detail::Fold;

inline constexpr int64_t kColumns = 256;  ///< results that stay in the first cache while rows pass by

inline bool folds_rows(const Fold& f) { return f.folded[0].stride == 1 || f.folds == 1; }

inline backend::Support accepts_fold(const backend::OpCall& c) {
  using backend::Support;
  if (auto s = shared::arity(c, 1, 1); !s) return s;
  if (auto s = shared::same_dtype(c.input(0), c.output(0)); !s) return s;
  for (const int64_t axis : c.attr("axes").ints())
    if (auto s = shared::axis_inside(axis, c.input(0).rank()); !s) return s;
  if (c.input(0).dtype() != DType::f32) return Support::no("dtype must be f32, got {}", c.input(0).dtype());
  const Fold f(c.input(0).max(), c.attr("axes").ints());
  if (f.n_kept == 1 && f.n_folded == 1) return Support::yes();
  return Support::no("axes that are kept and folded must not alternate");
}

/// f(first, n) for pieces of `outputs` columns, on the host's threads.
template <class F>
void each_piece(const backend::Host& host, int64_t rows, int64_t outputs, F f) {
  host.parallel_for((outputs + kColumns - 1) / kColumns, shared::grain_for(rows * kColumns),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t p = begin; p < end; ++p)
                        f(p * kColumns, std::min(kColumns, outputs - p * kColumns));
                    });
}

/// row(x, n) folds one row. whole(x, n), which folds everything, and columns(to, x, rows, n), which folds
/// each of n columns, use all threads.
template <class Row, class Whole, class Columns>
backend::Outcome fold(const backend::Launch& l, float start, Row row, Whole whole, Columns columns) {
  const backend::TensorView x = l.input(0), y = l.output(0);
  const Fold f(x.dims(), l.call().attr("axes").ints());
  const auto* from = x.data<float>();
  auto* to = y.data<float>();
  if (f.outputs == 0) return backend::Outcome::ok();
  if (f.folds == 0) {
    std::fill_n(to, f.outputs, start);
  } else if (f.outputs == 1) {
    *to = whole(from, f.folds);
  } else if (folds_rows(f)) {
    l.host().parallel_for(f.outputs, shared::grain_for(f.folds), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = row(from + i * f.folds, f.folds);
    });
  } else {
    columns(to, from, f.folds, f.outputs);
  }
  return backend::Outcome::ok();
}

}  // namespace weft::native

#pragma once
#include "backends/native/row_launch.h"
#include "weft/shared/ops/reduce.hpp"

// Folds of f32 whose axes join to one that is kept and one that is folded: rows (the folded one is innermost)
// or columns.
namespace weft::native {

using shared::detail::Fold;

inline bool folds_rows(const Fold& f) { return f.folded[0].stride == 1 || f.folds == 1; }

inline backend::Support accepts_fold(const backend::OpCall& c) {
  using backend::Support;
  if (c.input(0).dtype() != DType::f32) return Support::no("dtype must be f32, got {}", c.input(0).dtype());
  const Fold f(c.input(0).max(), c.attr("axes").ints());
  if (f.n_kept == 1 && f.n_folded == 1) return Support::yes();
  return Support::no("axes that are kept and folded must not alternate");
}

/// row(x, n) folds one row; whole(x, n) may do so on many threads; start and step(to, x, n) fold columns.
template <class Row, class Whole, class Step>
backend::Outcome fold(const backend::Launch& l, float start, Row row, Whole whole, Step step) {
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
    constexpr int64_t kColumns = 256;  // results that stay in the first cache while rows pass by
    const int64_t pieces = (f.outputs + kColumns - 1) / kColumns;
    l.host().parallel_for(pieces, shared::grain_for(f.folds * kColumns), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = p * kColumns, n = std::min(kColumns, f.outputs - first);
        std::fill_n(to + first, n, start);
        for (int64_t i = 0; i < f.folds; ++i) step(to + first, from + i * f.outputs + first, n);
      }
    });
  }
  return backend::Outcome::ok();
}

}  // namespace weft::native

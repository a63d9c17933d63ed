#pragma once
#include <vector>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// sort.
namespace weft::shared {

namespace detail {

/// A total order of the wide types: a NaN is larger than any number.
template <class W>
bool sorts_before(W a, W b) {
  return a < b || (b != b && a == a);
}

/// Where each element of a sorted row comes from. Compiled for each wide type, not for each dtype.
template <class W>
void order_of(const std::vector<W>& row, bool descending, std::vector<int32_t>& order) {
  order.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) {
    return descending ? sorts_before(row[j], row[i]) : sorts_before(row[i], row[j]);
  });
}

/// One row of n elements that lie `step` apart.
template <class T>
void sort_row(const T* x, T* values, int32_t* indices, int64_t n, int64_t step, bool descending) {
  std::vector<Wide<T>> row(n);
  for (int64_t i = 0; i < n; ++i) row[i] = load(x[i * step]);
  std::vector<int32_t> order;
  order_of(row, descending, order);
  for (int64_t i = 0; i < n; ++i) {
    values[i * step] = x[order[i] * step];
    indices[i * step] = order[i];
  }
}

inline Support accepts_sort(const OpCall& c) {
  if (auto s = arity(c, 1, 2); !s) return s;
  const TypeView x = c.input(0);
  if (!includes(Kinds::compute, x.dtype()))
    return Support::no("dtype must be {}, got {}", name(Kinds::compute), x.dtype());
  if (c.output(1).dtype() != DType::i32)
    return Support::no("indices must be i32, got {}", c.output(1).dtype());
  if (auto s = axis_inside(c.attr("axis").integer(), x.rank()); !s) return s;
  return same_dtype(x, c.output(0));
}

inline Outcome launch_sort(const Launch& l) {
  const TensorView x = l.input(0), values = l.output(0), indices = l.output(1);
  const int64_t axis = l.call().attr("axis").integer(), n = x.dim(axis);
  const bool descending = l.call().attr("descending").integer() != 0;
  const int64_t inner = product(x.dims().subspan(axis + 1)), rows = product(x.dims().first(axis)) * inner;
  if (x.size() == 0) return Outcome::ok();
  visit<Kinds::compute>(x.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(rows, grain_for(8 * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row / inner * n * inner + row % inner;
        sort_row(x.data<T>() + at, values.data<T>() + at, indices.data<int32_t>() + at, n, inner, descending);
      }
    });
  });
  return Outcome::ok();
}
}  // namespace detail

/// sort: along one axis, stable in both directions, with where each element came from. A NaN counts as larger
/// than any number.
inline std::array<KernelRecord, 1> sort_records() {
  return {KernelRecord{.op = "sort",
                       .variant = "shared",
                       .reads = {"axis", "descending"},
                       .accepts = detail::accepts_sort,
                       .launch = detail::launch_sort,
                       .determinism = WEFT_DETERMINISM_DEVICES}};
}

}  // namespace weft::shared

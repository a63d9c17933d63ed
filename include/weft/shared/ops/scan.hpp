#pragma once
#include "weft/shared/ops/movement.hpp"
#include "weft/shared/ops/reduce.hpp"

// cumsum.
namespace weft::shared {

namespace detail {

/// The running totals of one row of n elements that lie `step` apart; a negative one runs backward.
template <class T>
void scan_row(const T* x, T* y, int64_t n, int64_t step, bool exclusive) {
  Wide<T> total = 0;
  for (int64_t i = 0; i < n; ++i, x += step, y += step) {
    const Wide<T> v = load(*x);  // read first: y may lie over x
    if (exclusive) *y = store<T>(total);
    total = SumFold::step(total, v);
    if (!exclusive) *y = store<T>(total);
  }
}

inline Outcome launch_cumsum(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const OpCall c = l.call();
  const int64_t axis = c.attr("axis").integer(), n = x.dim(axis);
  const bool exclusive = c.attr("exclusive").integer() != 0, reverse = c.attr("reverse").integer() != 0;
  const int64_t inner = product(x.dims().subspan(axis + 1)), rows = product(x.dims().first(axis)) * inner;
  if (x.size() == 0) return Outcome::ok();
  visit<Kinds::numbers>(x.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(rows, grain_for(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = (row / inner * n + (reverse ? n - 1 : 0)) * inner + row % inner;
        scan_row(x.data<T>() + at, y.data<T>() + at, n, reverse ? -inner : inner, exclusive);
      }
    });
  });
  return Outcome::ok();
}
}  // namespace detail

/// cumsum: each element with all before it, without itself where `exclusive`, from the end where `reverse`.
/// Floats accumulate in double, integers wrap around.
inline std::array<KernelRecord, 1> scan_records() {
  return {KernelRecord{.op = "cumsum",
                       .variant = "shared",
                       .reads = {"axis", "exclusive", "reverse"},
                       .accepts = [](const OpCall& c) -> Support {
                         if (auto s = detail::accepts_along_axis(c); !s) return s;
                         if (includes(Kinds::numbers, c.input(0).dtype())) return Support::yes();
                         return Support::no("dtype must be {}, got {}", name(Kinds::numbers),
                                            c.input(0).dtype());
                       },
                       .launch = detail::launch_cumsum,
                       .in_place = true}};
}

}  // namespace weft::shared

#pragma once
#include <cstring>

#include "weft/shared/ops/movement.hpp"

// permute concat: elements take another order. Any dtype, by its size.
namespace weft::shared {

namespace detail {

inline Support accepts_permute(const OpCall& c) {
  if (auto s = accepts_movement(c); !s) return s;
  const auto axes = c.attr("axes").ints();
  const TypeView x = c.input(0), y = c.output(0);
  if (!axes.empty() && static_cast<int64_t>(axes.size()) != x.rank())
    return Support::no("axes must name each of {} axes, got {}", x.rank(), axes.size());
  for (int64_t d = 0; d < static_cast<int64_t>(axes.size()); ++d) {
    if (auto s = axis_inside(axes[d], x.rank()); !s) return s;
    if (y.rank() != x.rank() || y.max()[d] != x.max()[axes[d]])
      return Support::no("axis {} of the result must be axis {} of {}", d, axes[d], x.max());
  }
  return Support::yes();
}

/// Runs along the last axis of y, whose elements lie some stride apart in x.
inline Outcome launch_permute(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const auto axes = l.call().attr("axes").ints();
  const int64_t rank = y.rank(), run = rank == 0 ? 1 : y.dim(rank - 1);
  if (y.size() == 0) return Outcome::ok();
  std::array<int64_t, kMaxRank> stride{};  // of each axis of y, in x
  for (int64_t d = 0; d < rank; ++d)
    stride[d] = product(x.dims().subspan((axes.empty() ? rank - 1 - d : axes[d]) + 1));
  visit_size(y.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(y.size() / run, grain_for(run), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = 0, rest = i;
        for (int64_t d = rank - 2; d >= 0; rest /= y.dim(d--)) at += rest % y.dim(d) * stride[d];
        const int64_t step = rank == 0 ? 0 : stride[rank - 1];
        const T* from = x.data<T>() + at;
        T* to = y.data<T>() + i * run;
        if (step == 1) {
          std::memcpy(to, from, static_cast<size_t>(run) * sizeof(T));
        } else {
          for (int64_t k = 0; k < run; ++k) to[k] = from[k * step];
        }
      }
    });
  });
  return Outcome::ok();
}

inline Support accepts_concat(const OpCall& c) {
  const int64_t axis = c.attr("axis").integer();
  if (c.n_outputs() != 1) return Support::no("wants 1 output, got {}", c.n_outputs());
  const TypeView y = c.output(0);
  if (y.rank() > kMaxRank) return Support::no("rank must be <= 8, got {}", y.rank());
  if (auto s = axis_inside(axis, y.rank()); !s) return s;
  for (int64_t i = 0; i < c.n_inputs(); ++i) {
    if (!c.input(i).has()) continue;
    if (auto s = same_dtype(c.input(i), y); !s) return s;
    if (c.input(i).rank() != y.rank())
      return Support::no("operand {} must have rank {}, got {}", i, y.rank(), c.input(i).rank());
  }
  return Support::yes();
}

inline Outcome launch_concat(const Launch& l) {
  const OpCall c = l.call();
  const TensorView y = l.output(0);
  const Around to(y, c.attr("axis").integer());
  int64_t start = 0;
  for (int64_t k = 0; k < c.n_inputs(); ++k) {
    if (!c.input(k).has()) continue;
    const TensorView x = l.input(k);
    const Around from(x, c.attr("axis").integer());
    const int64_t bytes = from.size * from.inner;
    if (from.outer != to.outer || from.inner != to.inner || start + from.size > to.size)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "operand {} of {} does not fit into {} from {} on", k,
                           x.dims(), y.dims(), start);
    l.host().parallel_for(bytes == 0 ? 0 : from.outer, grain_for(bytes / 8), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(y.data() + (i * to.size + start) * to.inner, x.data() + i * bytes,
                    static_cast<size_t>(bytes));
    });
    start += from.size;
  }
  return Outcome::ok();
}
}  // namespace detail

/// permute: axis d of y is axis axes[d] of x; all in reverse where the list is empty. concat: one operand
/// after the other along one axis; absent ones count as nothing.
inline std::array<KernelRecord, 2> arrange_records() {
  return {KernelRecord{.op = "permute",
                       .variant = "shared",
                       .reads = {"axes"},
                       .accepts = detail::accepts_permute,
                       .launch = detail::launch_permute,
                       .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "concat",
           .variant = "shared",
           .reads = {"axis"},
           .accepts = detail::accepts_concat,
           .launch = detail::launch_concat,
           .determinism = WEFT_DETERMINISM_DEVICES}};
}

}  // namespace weft::shared

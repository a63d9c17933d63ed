#pragma once
#include <cstring>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// broadcast reshape slice pad: elements move, nothing is computed. Any dtype, by its size. full iota:
// elements from nothing.
namespace weft::shared {

namespace detail {

/// A tensor around one axis: `outer` blocks of `size` slices of `inner` bytes.
struct Around {
  int64_t outer, size, inner;
  Around(TensorView t, int64_t axis)
      : outer(product(t.dims().first(axis))),
        size(t.dim(axis)),
        inner(product(t.dims().subspan(axis + 1)) * static_cast<int64_t>(byte_size(t.dtype()))) {}
};

inline Support accepts_movement(const OpCall& c) {
  if (auto s = arity(c, 1, 1); !s) return s;
  return same_dtype(c.input(0), c.output(0));
}

inline Outcome launch_broadcast(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const Walk<1> walk(y.dims(), {x.dims()});
  visit_size(y.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(walk.total(), kGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](int64_t out, const auto& at, int64_t n) {
        const T* from = x.data<T>() + at[0];
        for (int64_t i = 0; i < n; ++i) y.data<T>()[out + i] = from[i * walk.stride(0)];
      });
    });
  });
  return Outcome::ok();
}

inline Outcome launch_reshape(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  if (x.bytes() != y.bytes())
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} and {} differ in size", x.dims(), y.dims());
  l.host().parallel_for(y.bytes(), 8 * kGrain, [&](int64_t begin, int64_t end) {
    if (x.data() != y.data())
      std::memcpy(y.data() + begin, x.data() + begin, static_cast<size_t>(end - begin));
  });
  return Outcome::ok();
}

inline Outcome launch_slice(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const OpCall c = l.call();
  const int64_t axis = c.attr("axis").integer(), start = c.attr("start").integer(),
                step = c.attr("step").integer(1);
  const Around from(x, axis), to(y, axis);
  if (to.outer * to.size * to.inner == 0) return Outcome::ok();
  if (start < 0 || step < 1 || start + (to.size - 1) * step >= from.size)
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} elements from {} by {} do not lie in an axis of {}",
                         to.size, start, step, from.size);
  const int64_t run = step == 1 ? to.size : 1, runs = to.size / run;  // elements that lie together
  l.host().parallel_for(to.outer * runs, grain_for(run * to.inner / 8), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = (i / runs) * from.size + start + (i % runs) * step;
      std::memcpy(y.data() + i * run * to.inner, x.data() + at * to.inner,
                  static_cast<size_t>(run * to.inner));
    }
  });
  return Outcome::ok();
}

/// n elements of `value`, rounded to the type.
inline void fill_elements(char* to, DType t, int64_t n, double value) {
  visit<Kinds::all>(t, [&]<class T>(Tag<T>) { std::fill_n(reinterpret_cast<T*>(to), n, store<T>(value)); });
}

inline Outcome launch_pad(const Launch& l) {
  const TensorView x = l.input(0), y = l.output(0);
  const OpCall c = l.call();
  const int64_t axis = c.attr("axis").integer(), before = c.attr("before").integer();
  const double value = c.attr("value").real();
  const Around from(x, axis), to(y, axis);
  const int64_t after = to.size - before - from.size;
  if (before < 0 || after < 0)
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} elements do not fit behind {} in an axis of {}",
                         from.size, before, to.size);
  const int64_t each = to.inner / static_cast<int64_t>(byte_size(y.dtype()));
  l.host().parallel_for(to.outer, grain_for(to.size * each), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* at = y.data() + i * to.size * to.inner;
      const int64_t bytes = from.size * from.inner;
      fill_elements(at, y.dtype(), before * each, value);
      if (bytes > 0) std::memcpy(at + before * to.inner, x.data() + i * bytes, static_cast<size_t>(bytes));
      fill_elements(at + (before + from.size) * to.inner, y.dtype(), after * each, value);
    }
  });
  return Outcome::ok();
}

inline Outcome launch_full(const Launch& l) {
  const TensorView y = l.output(0);
  double value = l.call().attr("value").real();
  for (const int64_t factor : l.call().attr("times").ints()) value *= static_cast<double>(factor);
  const auto each = static_cast<int64_t>(byte_size(y.dtype()));
  l.host().parallel_for(y.size(), kGrain, [&](int64_t begin, int64_t end) {
    fill_elements(y.data() + begin * each, y.dtype(), end - begin, value);
  });
  return Outcome::ok();
}

inline Outcome launch_iota(const Launch& l) {
  const TensorView y = l.output(0);
  visit<Kinds::numbers>(y.dtype(), [&]<class T>(Tag<T>) {
    l.host().parallel_for(y.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y.data<T>()[i] = store<T>(static_cast<Wide<T>>(i));
    });
  });
  return Outcome::ok();
}

inline Support accepts_along_axis(const OpCall& c) {
  if (auto s = accepts_movement(c); !s) return s;
  return axis_inside(c.attr("axis").integer(), c.input(0).rank());
}
}  // namespace detail

/// broadcast: NumPy's rule. reshape: the same elements. slice, pad: along one axis. full: value times
/// `times`. iota: 0, 1, 2, ...
inline std::array<KernelRecord, 6> movement_records() {
  return {KernelRecord{.op = "broadcast",
                       .variant = "shared",
                       .reads = {"shape"},
                       .accepts = [](const OpCall& c) -> Support {
                         if (auto s = detail::accepts_movement(c); !s) return s;
                         return broadcasts(c.input(0), c.output(0));
                       },
                       .launch = detail::launch_broadcast,
                       .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "reshape",
           .variant = "shared",
           .reads = {"shape"},
           .accepts = detail::accepts_movement,
           .launch = detail::launch_reshape,
           .determinism = WEFT_DETERMINISM_DEVICES,
           .in_place = true},
          {.op = "slice",
           .variant = "shared",
           .reads = {"axis", "start", "stop", "step"},
           .accepts = detail::accepts_along_axis,
           .launch = detail::launch_slice,
           .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "pad",
           .variant = "shared",
           .reads = {"axis", "before", "after", "value"},
           .accepts = detail::accepts_along_axis,
           .launch = detail::launch_pad,
           .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "full",
           .variant = "shared",
           .reads = {"value", "shape", "dtype", "times"},
           .accepts = [](const OpCall& c) { return arity(c, 0, 1); },
           .launch = detail::launch_full,
           .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "iota",
           .variant = "shared",
           .reads = {"size", "dtype"},
           .accepts = [](const OpCall& c) -> Support {
             if (auto s = arity(c, 0, 1); !s) return s;
             if (includes(Kinds::numbers, c.output(0).dtype())) return Support::yes();
             return Support::no("dtype must be {}, got {}", name(Kinds::numbers), c.output(0).dtype());
           },
           .launch = detail::launch_iota,
           .determinism = WEFT_DETERMINISM_DEVICES}};
}

}  // namespace weft::shared

#pragma once
#include <cstring>
#include <vector>

#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// gather scatter scatter_add: x[b, m, axis, r] and y[b, m, i, r] with an index[b, i].
namespace weft::shared {

namespace detail {

/// The sizes of such an op, and its index.
struct Picks {
  int64_t batch, middle, axis, picks, inner;
  const int32_t* narrow = nullptr;  // [batch, picks], one of the two
  const int64_t* wide = nullptr;

  int64_t index(int64_t i) const { return narrow ? narrow[i] : wide[i]; }

  Picks(const Launch& l, Outcome& outcome) {
    const TensorView x = l.input(0), from = l.input(1);
    const int64_t at = l.call().attr("axis").integer(), shared = l.call().attr("batch").integer();
    batch = product(x.dims().first(shared));
    middle = product(x.dims().subspan(shared, at - shared));
    axis = x.dim(at);
    picks = product(from.dims().subspan(shared));
    inner = product(x.dims().subspan(at + 1));
    if (from.dtype() == DType::i32) narrow = from.data<int32_t>();
    if (from.dtype() == DType::i64) wide = from.data<int64_t>();
    for (int64_t i = 0; i < from.size() && outcome.good(); ++i)
      if (index(i) < 0 || index(i) >= axis)
        outcome = Outcome::fail(WEFT_DEVICE, "index {} outside [0, {}) at position {}", index(i), axis, i);
  }
};

inline Support accepts_picks(const OpCall& c, int64_t n_inputs, Kinds kinds) {
  if (auto s = arity(c, n_inputs, 1); !s) return s;
  const TypeView x = c.input(0), index = c.input(1);
  const int64_t axis = c.attr("axis").integer(), batch = c.attr("batch").integer();
  if (!includes(kinds, x.dtype())) return Support::no("dtype must be {}, got {}", name(kinds), x.dtype());
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    return Support::no("index must be i32 or i64, got {}", index.dtype());
  if (auto s = axis_inside(axis, x.rank()); !s) return s;
  if (batch < 0 || batch > axis || batch > index.rank())
    return Support::no("batch must be at most axis {} and the rank of index {}, got {}", axis, index.rank(),
                       batch);
  for (int64_t i = 0; i < batch; ++i)
    if (x.max()[i] != index.max()[i])
      return Support::no("the first {} axes must be the same, got {} and {}", batch, x.max(), index.max());
  if (n_inputs == 3)
    if (auto s = same_dtype(x, c.input(2)); !s) return s;
  return same_dtype(x, c.output(0));
}

inline Outcome launch_gather(const Launch& l) {
  Outcome outcome;
  const Picks p(l, outcome);
  if (!outcome.good()) return outcome;
  const TensorView x = l.input(0), y = l.output(0);
  const int64_t row = p.inner * static_cast<int64_t>(byte_size(x.dtype()));
  if (row == 0) return outcome;
  l.host().parallel_for(p.batch * p.middle * p.picks, grain_for(p.inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / p.picks, b = block / p.middle;
      const int64_t at = block * p.axis + p.index(b * p.picks + i % p.picks);
      std::memcpy(y.data() + i * row, x.data() + at * row, static_cast<size_t>(row));
    }
  });
  return outcome;
}

inline Support accepts_scatter(const OpCall& c, Kinds kinds) {
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0)
    return Support::no("can only write over input 0, not {}", c.raw()->update_inputs[0]);
  return accepts_picks(c, 3, kinds);
}

inline Outcome launch_scatter(const Launch& l) {
  Outcome outcome;
  const Picks p(l, outcome);
  if (!outcome.good()) return outcome;
  const TensorView x = l.input(0), updates = l.input(2), y = l.output(0);
  const int64_t row = p.inner * static_cast<int64_t>(byte_size(x.dtype()));
  if (row == 0 || p.axis == 0) return outcome;
  const int64_t grain = grain_for((p.axis + p.picks) * p.inner);
  l.host().parallel_for(p.batch * p.middle, grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      char* to = y.data() + block * p.axis * row;
      if (x.data() != y.data())
        std::memcpy(to, x.data() + block * p.axis * row, static_cast<size_t>(p.axis * row));
      for (int64_t i = 0; i < p.picks; ++i)
        std::memcpy(to + p.index(block / p.middle * p.picks + i) * row,
                    updates.data() + (block * p.picks + i) * row, static_cast<size_t>(row));
    }
  });
  return outcome;
}

/// One block [axis, some columns] of y: read, added to in the order of the index, rounded once.
template <class T>
void scatter_block(const Picks& p, const T* x, const T* updates, T* y, int64_t b, int64_t column, int64_t n,
                   std::vector<Wide<T>>& total) {
  for (int64_t a = 0; a < p.axis; ++a)
    for (int64_t c = 0; c < n; ++c) total[a * n + c] = load(x[a * p.inner + column + c]);
  for (int64_t i = 0; i < p.picks; ++i) {
    Wide<T>* to = total.data() + p.index(b * p.picks + i) * n;
    for (int64_t c = 0; c < n; ++c) {
      const Wide<T> v = load(updates[i * p.inner + column + c]);
      if constexpr (is_any_float<T>) {
        to[c] += v;
      } else {
        to[c] = static_cast<Wide<T>>(uint64_t(to[c]) + uint64_t(v));
      }
    }
  }
  for (int64_t a = 0; a < p.axis; ++a)
    for (int64_t c = 0; c < n; ++c) y[a * p.inner + column + c] = store<T>(total[a * n + c]);
}

inline Outcome launch_scatter_add(const Launch& l) {
  Outcome outcome;
  const Picks p(l, outcome);
  if (!outcome.good()) return outcome;
  constexpr int64_t kColumns = 64;
  const int64_t column_blocks = (p.inner + kColumns - 1) / kColumns;
  visit<Kinds::numbers>(l.output(0).dtype(), [&]<class T>(Tag<T>) {
    const T *x = l.input(0).data<T>(), *updates = l.input(2).data<T>();
    T* y = l.output(0).data<T>();
    const int64_t grain = grain_for((p.axis + p.picks) * kColumns);
    l.host().parallel_for(p.batch * p.middle * column_blocks, grain, [&](int64_t begin, int64_t end) {
      std::vector<Wide<T>> total(p.axis * kColumns);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / column_blocks, column = i % column_blocks * kColumns;
        scatter_block(p, x + block * p.axis * p.inner, updates + block * p.picks * p.inner,
                      y + block * p.axis * p.inner, block / p.middle, column,
                      std::min(kColumns, p.inner - column), total);
      }
    });
  });
  return outcome;
}
}  // namespace detail

/// gather: y[b, m, i, r] = x[b, m, index[b, i], r]. scatter: y = x, then y[b, m, index[b, i], r] = updates[b,
/// m, i, r] in the order of i; scatter_add: += instead. An index outside the axis is a device error, and
/// nothing is written.
inline std::array<KernelRecord, 3> gather_records() {
  return {KernelRecord{.op = "gather",
                       .variant = "shared",
                       .reads = {"axis", "batch"},
                       .accepts = [](const OpCall& c) { return detail::accepts_picks(c, 2, Kinds::all); },
                       .launch = detail::launch_gather,
                       .determinism = WEFT_DETERMINISM_DEVICES},
          {.op = "scatter",
           .variant = "shared",
           .reads = {"axis", "batch"},
           .accepts = [](const OpCall& c) { return detail::accepts_scatter(c, Kinds::all); },
           .launch = detail::launch_scatter,
           .determinism = WEFT_DETERMINISM_DEVICES,
           .in_place = true},
          {.op = "scatter_add",
           .variant = "shared",
           .reads = {"axis", "batch"},
           .accepts = [](const OpCall& c) { return detail::accepts_scatter(c, Kinds::numbers); },
           .launch = detail::launch_scatter_add,
           .in_place = true}};
}

}  // namespace weft::shared

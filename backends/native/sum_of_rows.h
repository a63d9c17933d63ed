#pragma once
#include <algorithm>
#include <cstring>

#include "backends/native/row_launch.h"

// Rows of a sum: what a norm of a sum reads, with the bits that add and the norm have as two kernels.
namespace weft::native {

/// Is `part`, of one shape or with leading axes of size 1, repeated along the first axes of `whole`?
inline bool repeats(std::span<const int64_t> part, std::span<const int64_t> whole) {
  while (!part.empty() && part.front() == 1) part = part.subspan(1);
  return part.size() <= whole.size() && std::ranges::equal(part, whole.last(part.size()));
}

/// Accepts a + b and `more` operands of one row, of f32 or halves. The results are the sum, unless nothing
/// else reads it, and another one like it, which is the last. One of a and b has their shape, the other is
/// repeated along its first axes, of which a row is no part.
inline backend::Support accepts_sum(const backend::OpCall& c, int64_t more, size_t trailing) {
  using backend::Support;
  if (c.n_inputs() != 2 + more || c.n_outputs() < 1 || c.n_outputs() > 2)
    return Support::no("wants {} inputs and 1 or 2 outputs, got {} and {}", 2 + more, c.n_inputs(),
                       c.n_outputs());
  const backend::TypeView y = c.output(0);
  const DType d = y.dtype();
  if (d != DType::f32 && d != DType::f16 && d != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", d);
  if (trailing < 1 || static_cast<size_t>(y.rank()) < trailing)
    return Support::no("rows of {} axes are none of {}", trailing, y.max());
  const auto row = y.max().last(trailing);
  for (int64_t i = 0; i < c.n_inputs(); ++i) {
    if (auto s = shared::same_dtype(c.input(i), y); !s) return s;
    const auto shape = c.input(i).max();
    const bool fits = i >= 2 ? std::ranges::equal(shape, row)
                             : repeats(shape, y.max()) && shape.size() >= trailing &&
                                   std::ranges::equal(shape.last(trailing), row);
    if (!fits) return Support::no("input {} of shape {} does not fit {}", i, shape, y.max());
  }
  if (c.n_outputs() == 2 && !std::ranges::equal(c.output(1).max(), y.max()))
    return Support::no("results have shapes {} and {}", y.max(), c.output(1).max());
  for (int64_t k = 0; k < c.n_outputs(); ++k)
    if ((c.updates() >> k & 1) != 0 && c.raw()->update_inputs[k] > 1)
      return Support::no("can only write over what is added");
  return shared::same_dtype(c.output(c.n_outputs() - 1), y);
}

/// to = x + y; `to` may be either.
inline void add_rows(const float* x, const float* y, float* to, int64_t n) {
  if (to == y) std::swap(x, y);
  if (to != x) std::memcpy(to, x, static_cast<size_t>(n) * sizeof(float));
  add_to(to, y, n);
}

/// row(x, y) for each row x of n elements of the sum; y is the row of the last result.
template <class Row>
void for_rows_of_sum(const backend::Launch& l, int64_t n, Row row) {
  const backend::TensorView a = l.input(0), b = l.input(1), y = l.output(l.call().n_outputs() - 1);
  const backend::TensorView sum = l.output(0);  // y itself, if nothing else reads it
  const int64_t rows = n == 0 ? 0 : y.size() / n, of_a = a.size() / std::max<int64_t>(n, 1),
                of_b = b.size() / std::max<int64_t>(n, 1);
  const Stored stored = stored_float(y.dtype());
  l.host().parallel_for(
      rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
        float* wide = stored == Stored::f32 ? nullptr : scratch<float>(Scratch::rows, n);
        float* more = stored == Stored::f32 ? nullptr : scratch<float>(Scratch::pieces, n);
        for (int64_t r = begin; r < end; ++r) {
          const int64_t in_a = r % of_a * n, in_b = r % of_b * n;
          if (stored == Stored::f32) {
            float* to = sum.data<float>() + r * n;
            add_rows(a.data<float>() + in_a, b.data<float>() + in_b, to, n);
            row(to, y.data<float>() + r * n);
            continue;
          }
          widen(stored, a.data<uint16_t>() + in_a, wide, n);
          widen(stored, b.data<uint16_t>() + in_b, more, n);
          add_to(wide, more, n);
          narrow(stored, wide, sum.data<uint16_t>() + r * n, n);  // what the norm reads is rounded
          widen(stored, sum.data<uint16_t>() + r * n, wide, n);
          row(wide, wide);
          narrow(stored, wide, y.data<uint16_t>() + r * n, n);
        }
      });
}

}  // namespace weft::native

#pragma once
#include <algorithm>

#include "backends/native/scratch.h"
#include "backends/native/steps.h"
#include "weft/shared/walk.hpp"

// Kernels with independent rows: halves are widened row by row, so row functions see f32 only.
namespace weft::native {

inline Stored stored_float(DType t) {
  return t == DType::f16 ? Stored::f16 : t == DType::bf16 ? Stored::bf16 : Stored::f32;
}
/// Accepts one operand of f32 or halves with at least one axis, a result like it, and `more` operands of its
/// dtype, the last `optional` of which may be absent. A program file may name any body "softmax", so
/// everything is checked.
inline backend::Support accepts_rows(const backend::OpCall& c, int64_t more = 0, int64_t optional = 0) {
  using backend::Support;
  if (c.n_inputs() != 1 + more || c.n_outputs() != 1)
    return Support::no("wants {} inputs and 1 output, got {} and {}", 1 + more, c.n_inputs(), c.n_outputs());
  for (int64_t i = 0; i <= more; ++i) {
    if (!c.input(i).has() && i > more - optional) continue;
    if (!c.input(i).has()) return Support::no("input {} is absent", i);
    if (auto s = shared::same_dtype(c.input(i), c.output(0)); !s) return s;
  }
  const DType d = c.input(0).dtype();
  if (d != DType::f32 && d != DType::f16 && d != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", d);
  if (c.input(0).rank() < 1) return Support::no("wants rows, got a single element");
  if (c.updates() != 0 && c.raw()->update_inputs[0] != 0) return Support::no("can only write over input 0");
  if (std::ranges::equal(c.input(0).max(), c.output(0).max())) return Support::yes();
  return Support::no("the result must have shape {}, got {}", c.input(0).max(), c.output(0).max());
}
/// A weight of one row.
inline backend::Support one_row(backend::TypeView weight, std::span<const int64_t> row) {
  if (!weight.has() || std::ranges::equal(weight.max(), row)) return backend::Support::yes();
  return backend::Support::no("weights must have shape {}, got {}", row, weight.max());
}
/// softmax and similar ops: rows are the last axis.
inline backend::Support accepts_last_axis(const backend::OpCall& c) {
  if (auto s = accepts_rows(c); !s) return s;
  const int64_t axis = c.attr("axis").integer(-1), rank = c.input(0).rank();
  if (axis == rank - 1 || axis == -1) return backend::Support::yes();
  return backend::Support::no("axis must be last, got {} of {}", axis, rank);
}

/// Elements of f32: `operands` of one shape, and a result like them.
inline backend::Support accepts_alike(const backend::OpCall& c, int64_t operands) {
  using backend::Support;
  if (auto s = shared::arity(c, operands, 1); !s) return s;
  if (c.output(0).dtype() != DType::f32) return Support::no("dtype must be f32, got {}", c.output(0).dtype());
  for (int64_t i = 0; i < operands; ++i) {
    if (auto s = shared::same_dtype(c.input(i), c.output(0)); !s) return s;
    if (!std::ranges::equal(c.input(i).max(), c.output(0).max()))
      return Support::no("operands must have shape {}, got {}", c.output(0).max(), c.input(i).max());
  }
  return Support::yes();
}

/// A small operand as f32: itself, or widened into this thread's scratch `name`.
inline const float* as_f32(backend::TensorView t, Scratch name) {
  if (t.dtype() == DType::f32) return t.data<float>();
  auto* to = scratch<float>(name, t.size());
  widen(stored_float(t.dtype()), t.data(), to, t.size());
  return to;
}

/// row(r, x, y) for each row r of n elements, on the host's threads; y is row r of the result.
template <class Row>
void for_rows(const backend::Launch& l, backend::TensorView x, backend::TensorView y, int64_t n, Row row) {
  const int64_t rows = n == 0 ? 0 : x.size() / n;
  const Stored stored = stored_float(x.dtype());
  l.host().parallel_for(rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(1, n)),
                        [&](int64_t begin, int64_t end) {
                          if (stored == Stored::f32) {
                            for (int64_t r = begin; r < end; ++r)
                              row(r, x.data<float>() + r * n, y.data<float>() + r * n);
                            return;
                          }
                          float* wide = scratch<float>(Scratch::rows, n);
                          for (int64_t r = begin; r < end; ++r) {
                            widen(stored, x.data<uint16_t>() + r * n, wide, n);
                            row(r, wide, wide);
                            narrow(stored, wide, y.data<uint16_t>() + r * n, n);
                          }
                        });
}

}  // namespace weft::native

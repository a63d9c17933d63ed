#pragma once
#include "backends/native/scratch.h"
#include "backends/native/steps.h"
#include "weft/shared/walk.hpp"

// Kernels whose rows do not meet: halves are widened row by row, so a row function sees f32 only.
namespace weft::native {

inline Stored stored_float(DType t) {
  return t == DType::f16 ? Stored::f16 : t == DType::bf16 ? Stored::bf16 : Stored::f32;
}
inline backend::Support rows_dtype(backend::TypeView t) {
  const DType d = t.dtype();
  if (d == DType::f32 || d == DType::f16 || d == DType::bf16) return backend::Support::yes();
  return backend::Support::no("dtype must be f32, f16 or bf16, got {}", d);
}

/// A whole small operand as f32: itself, or widened into this thread's scratch `name`.
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

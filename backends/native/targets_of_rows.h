#pragma once
#include "backends/native/row_launch.h"

// What cross_entropy and its gradient share: logits [n, classes] and a class for each row.
namespace weft::native {

inline backend::Support accepts_classes(const backend::OpCall& c) {
  using backend::Support;
  const backend::TypeView x = c.input(0), target = c.input(1);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f16 && x.dtype() != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", x.dtype());
  if (target.dtype() != DType::i32 && target.dtype() != DType::i64)
    return Support::no("targets must be i32 or i64, got {}", target.dtype());
  if (x.rank() == 2 && target.rank() == 1 && x.max()[0] == target.max()[0]) return Support::yes();
  return Support::no("wants [n, classes] and [n], got {} and {}", x.max(), target.max());
}

inline int64_t target_of(backend::TensorView t, int64_t row) {
  return t.dtype() == DType::i32 ? t.data<int32_t>()[row] : t.data<int64_t>()[row];
}

/// The first row whose target is no class, or -1.
inline int64_t row_without_class(backend::TensorView target, int64_t classes) {
  for (int64_t r = 0; r < target.size(); ++r)
    if (const int64_t t = target_of(target, r); t < 0 || t >= classes) return r;
  return -1;
}
inline backend::Outcome no_such_class(backend::TensorView target, int64_t row, int64_t classes) {
  return backend::Outcome::fail(WEFT_INVALID_ARGUMENT, "target {} of row {} is outside [0, {})",
                                target_of(target, row), row, classes);
}

}  // namespace weft::native

#include "base/element.h"
#include "ops/shared/rules.h"

namespace weft::ops {

struct FullAttrs {
  double value = 0;
  Shape shape;
  DType dtype = DType::f32;
  Dim times = 1;
  static constexpr auto fields = ir::fields("value", &FullAttrs::value, "shape", &FullAttrs::shape, "dtype",
                                            &FullAttrs::dtype, "times", &FullAttrs::times);
};

static Result<TensorType> infer(ir::Types, const FullAttrs& a) {
  for (const Dim d : a.shape)
    if (d.min() < 0) return invalid("full: a dimension must not be negative, got {}", text(a.shape));
  const double value = a.times.is_const() ? a.value * static_cast<double>(a.times.value()) : a.value;
  if (!may_stand_for(a.dtype, value)) return cannot_hold("full", a.dtype, value);
  return TensorType{a.dtype, a.shape};
}

static constexpr ir::Op<FullAttrs> spec = {
    .name = "full",
    .doc =
        "A tensor whose elements are all value * times.\n\n"
        "Shape    `shape`.\n"
        "DType    `dtype`.\n"
        "Numerics `times` may be a symbolic dimension, so that a program can divide by its batch size.\n"
        "Grad     none: it has no operand.\n"
        "Errors   invalid_argument for a value that `dtype` does not hold: 0.5 or an infinity in integers, "
        "what\n"
        "         overflows or becomes 0 in floats.",
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef full = ir::define<spec>();

}  // namespace weft::ops

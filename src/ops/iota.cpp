#include "ops/shared/rules.h"

namespace weft::ops {

struct IotaAttrs {
  Dim size = 0;
  DType dtype = DType::i32;
  static constexpr auto fields = ir::fields("size", &IotaAttrs::size, "dtype", &IotaAttrs::dtype);
};

static Result<TensorType> infer(ir::Types, const IotaAttrs& a) {
  if (a.size.min() < 0) return invalid("iota: size must not be negative, got {}", a.size.text());
  if (!is_compute(a.dtype) || a.dtype == DType::boolean)
    return invalid("iota: wants a number type, got {}", name(a.dtype));
  return TensorType{a.dtype, {a.size}};
}

static constexpr ir::Op<IotaAttrs> spec = {
    .name = "iota",
    .doc =
        "The numbers 0, 1, 2, ... below `size`.\n\n"
        "Shape    [size].\n"
        "DType    `dtype`, a number type; each element is rounded to it.\n"
        "Grad     none: it has no operand.\n"
        "Errors   invalid_argument when size is negative.",
    .differentiable = false,
    .infer = infer,
};
extern constinit const ir::OpDef iota = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("log1p", in);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.div(ctx.dout(0), b.add(ctx.in(0), 1))};
}

static constexpr ir::Op<> spec = {
    .name = "log1p",
    .doc =
        "Natural logarithm of 1 + `x`, element by element.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; below -1 NaN.\n"
        "Numerics as accurate for `x` near 0 as elsewhere, which log(1 + x) is not.\n"
        "Grad     needs `x`.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef log1p = ir::define<spec>();

}  // namespace weft::ops

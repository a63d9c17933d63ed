#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_float_unary("sin", in); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.mul(ctx.dout(0), b.cos(ctx.in(0)))};
}

static constexpr ir::Op<> spec = {
    .name = "sin",
    .doc =
        "Sine of `x`, an angle in radians, element by element.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; of an infinity NaN.\n"
        "Grad     needs `x`.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef sin = ir::define<spec>();

}  // namespace weft::ops

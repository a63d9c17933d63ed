#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("rsqrt", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.div(1, b.sqrt(in[0]));
}

// dx = -dy y^3 / 2
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto y = ctx.out(0);
  return {b.mul(ctx.dout(0), b.mul(b.mul(y, b.mul(y, y)), -0.5))};
}

static constexpr ir::Op<> spec = {
    .name = "rsqrt",
    .doc =
        "1 / sqrt(`x`), element by element.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats; of a negative number NaN.\n"
        "Grad     needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef rsqrt = ir::define<spec>();

}  // namespace weft::ops

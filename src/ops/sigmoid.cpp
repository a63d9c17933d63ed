#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("sigmoid", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.div(1, b.add(b.exp(b.neg(in[0])), 1));
}

// dx = dy y (1 - y)
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto y = ctx.out(0);
  return {b.mul(ctx.dout(0), b.mul(y, b.sub(1, y)))};
}

static constexpr ir::Op<> spec = {
    .name = "sigmoid",
    .doc =
        "1 / (1 + exp(-x)): from 0 to 1, 1/2 at 0.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics overflows nowhere: 0 and 1 far out.\n"
        "Grad     needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef sigmoid = ir::define<spec>();

}  // namespace weft::ops

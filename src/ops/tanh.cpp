#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("tanh", in);
}

// dx = dy (1 - y^2)
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto y = ctx.out(0);
  return {b.mul(ctx.dout(0), b.sub(1, b.mul(y, y)))};
}

static constexpr ir::Op<> spec = {
    .name = "tanh",
    .doc =
        "Hyperbolic tangent, element by element.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef tanh = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_float_unary("exp", in); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.mul(ctx.dout(0), ctx.out(0))};
}

static constexpr ir::Op<> spec = {
    .name = "exp",
    .doc =
        "e to the power of `x`, element by element.\n\nShape    same as `x`.\nDType    floats.\nGrad     "
        "needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef exp = ir::define<spec>();

}  // namespace weft::ops

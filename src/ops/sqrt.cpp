#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("sqrt", in);
}

// y = sqrt(x): dx = dy / (2 y)
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.div(b.mul(ctx.dout(0), 0.5), ctx.out(0))};
}

static constexpr ir::Op<> spec = {
    .name = "sqrt",
    .doc =
        "Square root, element by element.\n\nShape    same as `x`.\nDType    floats; of a negative number "
        "NaN.\nGrad     needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef sqrt = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_unary("square", in); }

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) { return b.mul(in[0], in[0]); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.mul(ctx.dout(0), b.mul(ctx.in(0), 2))};
}

static constexpr ir::Op<> spec = {
    .name = "square",
    .doc =
        "`x` times itself.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers; integers wrap around.\n"
        "Grad     needs `x`.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef square = ir::define<spec>();

}  // namespace weft::ops

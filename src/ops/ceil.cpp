#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("ceil", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.neg(b.floor(b.neg(in[0])));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.zeros_like(ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "ceil",
    .doc =
        "Least whole number that is not below `x`, element by element.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     zero.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef ceil = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("round", in);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.zeros_like(ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "round",
    .doc =
        "Nearest whole number, element by element; of two equally near ones the even one.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     zero.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef round = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_unary("neg", in); }

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) { return b.neg(in[0]); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.neg(ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "neg",
    .doc =
        "`x` with the other sign.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers; integers wrap around.\n"
        "Grad     needs nothing.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef neg = ir::define<spec>();

}  // namespace weft::ops

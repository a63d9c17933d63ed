#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_float_unary("log", in); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.div(ctx.dout(0), ctx.in(0))};
}

static constexpr ir::Op<> spec = {
    .name = "log",
    .doc =
        "Natural logarithm, element by element.\n\nShape    same as `x`.\nDType    floats; log(0) is -inf, "
        "of a negative number NaN.\nGrad     needs the input.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef log = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("relu", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) { return b.maximum(in[0], 0); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.where(b.one("less_equal", {ctx.out(0), b.zeros_like(ctx.out(0))}), 0, ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "relu",
    .doc =
        "max(x, 0), element by element; a NaN stays.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     needs the output only; 0 at x = 0, and dy at NaN.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef relu = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("trunc", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto x = in[0];
  return b.where(b.less(x, 0), b.one("ceil", {x}), b.floor(x));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.zeros_like(ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "trunc",
    .doc =
        "`x` without its fraction: the next whole number toward zero.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     zero.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef trunc = ir::define<spec>();

}  // namespace weft::ops

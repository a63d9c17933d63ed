#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("silu", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.mul(in[0], b.sigmoid(in[0]));
}

// With s = sigmoid(x): dx = dy s (1 + x (1 - s))
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto x = ctx.in(0), s = b.sigmoid(x);
  return {b.mul(ctx.dout(0), b.mul(s, b.add(b.mul(x, b.sub(1, s)), 1)))};
}

static constexpr ir::Op<> spec = {
    .name = "silu",
    .doc =
        "x sigmoid(x), also called swish.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics finite for every finite `x`; NaN at -inf, as in PyTorch.\n"
        "Grad     needs `x`.\n"
        "Source   Elfwing et al., Sigmoid-weighted linear units (Neural Networks 2018).",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef silu = ir::define<spec>();

}  // namespace weft::ops

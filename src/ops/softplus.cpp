#include "ops/shared/rules.h"

namespace weft::ops {

struct SoftplusAttrs {
  double beta = 1;
  static constexpr auto fields = ir::fields("beta", &SoftplusAttrs::beta);
};

static Result<TensorType> infer(ir::Types in, const SoftplusAttrs& a) {
  if (!(a.beta > 0)) return invalid("softplus: beta must be positive, got {}", a.beta);
  return ir::infer_float_unary("softplus", in);
}

static ir::Value scaled(ir::Builder& b, ir::Value x, double by) { return by == 1 ? x : b.mul(x, by); }

// log(1 + e^z) = max(z, 0) + log(1 + e^-|z|), where e^-|z| is at most 1.
static ir::Value decompose(ir::Builder& b, ir::Values in, const SoftplusAttrs& a) {
  const auto z = scaled(b, in[0], a.beta);
  const auto y = b.add(b.maximum(z, 0), b.log1p(b.exp(b.neg(b.abs(z)))));
  return scaled(b, y, 1 / a.beta);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const SoftplusAttrs& a) {
  return {b.mul(ctx.dout(0), b.sigmoid(scaled(b, ctx.in(0), a.beta)))};
}

static constexpr ir::Op<SoftplusAttrs> spec = {
    .name = "softplus",
    .doc =
        "log(1 + exp(beta x)) / beta: a smooth max(x, 0).\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics overflows nowhere, and needs no threshold beyond which it would be linear.\n"
        "Grad     needs `x`.\n"
        "Errors   invalid_argument unless beta > 0.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef softplus = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/gelu.h"

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::GeluAttrs&) {
  return ir::infer_float_unary("gelu", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::GeluAttrs& a) {
  return b.mul(b.mul(in[0], 0.5), b.add(ir::symmetric_cdf(b, in[0], a.approximate), 1));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::GeluAttrs& a) {
  return {b.one("gelu_grad", {ctx.in(0), ctx.dout(0)}, {{"approximate", int64_t{a.approximate}}})};
}

static constexpr ir::Op<ir::GeluAttrs> spec = {
    .name = "gelu",
    .doc =
        "x P(X < x) for a normally distributed X.\n\n"
        "That is x (1 + erf(x / sqrt(2))) / 2, or with `approximate`\n"
        "x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics finite for every finite `x`; NaN at -inf, as in PyTorch.\n"
        "Grad     needs `x`.\n"
        "Source   Hendrycks and Gimpel, Gaussian error linear units (2016).",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef gelu = ir::define<spec>();

}  // namespace weft::ops

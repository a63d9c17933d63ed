#include <numbers>

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_float_unary("erf", in); }

// dx = dy 2 / sqrt(pi) exp(-x^2)
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto x = ctx.in(0);
  return {b.mul(ctx.dout(0), b.mul(b.exp(b.neg(b.mul(x, x))), 2 * std::numbers::inv_sqrtpi))};
}

static constexpr ir::Op<> spec = {
    .name = "erf",
    .doc =
        "Error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `x`.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     needs `x`.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef erf = ir::define<spec>();

}  // namespace weft::ops

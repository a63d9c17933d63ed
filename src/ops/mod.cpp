#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_arithmetic("mod", in); }

// (a - y) / b is floor(a / b) up to rounding, while a / b may round up to the next integer.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = b.sum_to(dy, ctx.in_type(0).shape);
  if (ctx.wants(1)) {
    const auto quotient = b.round(b.div(b.sub(ctx.in(0), ctx.out(0)), ctx.in(1)));
    g[1] = b.sum_to(b.neg(b.mul(dy, quotient)), ctx.in_type(1).shape);
  }
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "mod",
    .doc =
        "Remainder of `a` / `b`, with the sign of `b`: a - b floor(a / b), as in Python.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one number dtype for both; x mod 0 is NaN for floats and 0 for integers.\n"
        "Numerics exact but for one rounding, where a and b have different signs.\n"
        "Grad     dy for `a`; -floor(a / b) dy for `b`. Needs both and the output.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs | ir::saves::outputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef mod = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_arithmetic("div", in); }

// y = a / b: da = dy / b, db = -y dy / b
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto da = b.div(ctx.dout(0), ctx.in(1));
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = b.sum_to(da, ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = b.sum_to(b.neg(b.mul(da, ctx.out(0))), ctx.in_type(1).shape);
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "div",
    .doc =
        "Divides `a` by `b`.\n\nShape    NumPy broadcasting.\nDType    one number type for both; integers "
        "divide "
        "toward zero, and x / 0 is 0.\nGrad     needs `b` and the output.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::input(1) | ir::saves::output(0),
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef div = ir::define<spec>();

}  // namespace weft::ops

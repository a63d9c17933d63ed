#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_arithmetic("mul", in); }

// d(ab) = b da + a db
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = b.sum_to(b.mul(dy, ctx.in(1)), ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = b.sum_to(b.mul(dy, ctx.in(0)), ctx.in_type(1).shape);
  return g;
}

static constexpr ir::Op<> spec = {
    .name = "mul",
    .doc =
        "Multiplies two tensors element by element.\n\nShape    NumPy broadcasting.\nDType    one number "
        "type for "
        "both; integers wrap around.\nGrad     needs both inputs.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef mul = ir::define<spec>();

}  // namespace weft::ops

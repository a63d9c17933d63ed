#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_arithmetic("sub", in); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  const auto db = ctx.wants(1) ? b.sum_to(b.neg(dy), ctx.in_type(1).shape) : ir::Value();
  return {b.sum_to(dy, ctx.in_type(0).shape), db};
}

static constexpr ir::Op<> spec = {
    .name = "sub",
    .doc =
        "Subtracts `b` from `a`.\n\nShape    NumPy broadcasting.\nDType    one number type for both; "
        "integers wrap "
        "around.\nGrad     needs nothing.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::nothing,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef sub = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_arithmetic("add", in); }

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto dy = ctx.dout(0);
  return {b.sum_to(dy, ctx.in_type(0).shape), b.sum_to(dy, ctx.in_type(1).shape)};
}

static constexpr ir::Op<> spec = {
    .name = "add",
    .doc =
        "Adds two tensors.\n\nShape    NumPy broadcasting.\nDType    one number type for both; integers wrap "
        "around.\nGrad     needs nothing.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::nothing,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef add = ir::define<spec>();

}  // namespace weft::ops

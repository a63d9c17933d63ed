#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_arithmetic("maximum", in);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto x = ctx.in(0), y = ctx.in(1);
  return ir::shared_by_ties(b, ctx, b.less(x, y), b.less(y, x));
}

static constexpr ir::Op<> spec = {
    .name = "maximum",
    .doc =
        "Larger one of `a` and `b`; NaN if either is.\n\n"
        "Shape    NumPy broadcasting.\n"
        "DType    one number dtype for both.\n"
        "Grad     needs both inputs; equal ones share it evenly.",
    .inputs = {"a", "b"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef maximum = ir::define<spec>();

}  // namespace weft::ops

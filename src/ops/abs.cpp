#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_unary("abs", in); }

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.where(b.less(0, in[0]), in[0], b.sub(0, in[0]));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto x = ctx.in(0), dy = ctx.dout(0);
  return {b.where(b.less(0, x), dy, b.where(b.less(x, 0), b.neg(dy), 0))};
}

static constexpr ir::Op<> spec = {
    .name = "abs",
    .doc =
        "`x` without its sign.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers; the least integer stays.\n"
        "Grad     needs `x`; 0 at 0 and at NaN.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef abs = ir::define<spec>();

}  // namespace weft::ops

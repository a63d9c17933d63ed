#include "base/element.h"
#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) { return ir::infer_unary("sign", in); }

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto x = in[0], rest = b.where(b.equal(x, 0), 0, x);  // a zero without sign, or NaN
  return b.where(b.less(0, x), 1, holds(x.dtype(), -1) ? b.where(b.less(x, 0), -1, rest) : rest);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.zeros_like(ctx.dout(0))};
}

static constexpr ir::Op<> spec = {
    .name = "sign",
    .doc =
        "-1, 0 or 1: the sign of `x`.\n\n"
        "Shape    same as `x`.\n"
        "DType    numbers; a NaN stays, as in NumPy (PyTorch gives 0).\n"
        "Grad     zero.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef sign = ir::define<spec>();

}  // namespace weft::ops

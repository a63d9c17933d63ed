#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_float_unary("expm1", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  // tanh(x/2) = (e^x - 1) / (e^x + 1), and nothing here cancels. Near 0 it is x: half of a subnormal is not
  // exact.
  const auto x = in[0], y = b.mul(b.tanh(b.mul(x, 0.5)), b.add(b.exp(x), 1));
  return b.where(b.less(b.abs(x), 0x1p-60), x, y);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  return {b.mul(ctx.dout(0), b.add(ctx.out(0), 1))};
}

static constexpr ir::Op<> spec = {
    .name = "expm1",
    .doc =
        "e to the power of `x`, minus 1.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Numerics as accurate for `x` near 0 as elsewhere, which exp(x) - 1 is not.\n"
        "Grad     needs the output only.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef expm1 = ir::define<spec>();

}  // namespace weft::ops

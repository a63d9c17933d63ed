#include "ops/shared/rules.h"

namespace weft::ops {

struct LeakyReluAttrs {
  double slope = 0.01;
  static constexpr auto fields = ir::fields("slope", &LeakyReluAttrs::slope);
};

static Result<TensorType> infer(ir::Types in, const LeakyReluAttrs&) {
  return ir::infer_float_unary("leaky_relu", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const LeakyReluAttrs& a) {
  return b.where(b.less(0, in[0]), in[0], b.mul(in[0], a.slope));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const LeakyReluAttrs& a) {
  const auto dy = ctx.dout(0);
  return {b.where(b.less(0, ctx.in(0)), dy, b.mul(dy, a.slope))};
}

static constexpr ir::Op<LeakyReluAttrs> spec = {
    .name = "leaky_relu",
    .doc =
        "`x` where it is positive, and slope times `x` elsewhere.\n\n"
        "Shape    same as `x`.\n"
        "DType    floats.\n"
        "Grad     needs `x`; slope at 0.",
    .inputs = {"x"},
    .traits = ir::Trait::elementwise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef leaky_relu = ir::define<spec>();

}  // namespace weft::ops

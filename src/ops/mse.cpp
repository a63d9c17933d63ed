#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::NoAttrs&) {
  WEFT_TRY(const auto x, ir::infer_float_unary("mse", in));
  if (in[1].dtype != x.dtype || !(in[1].shape == x.shape))
    return invalid("mse: x and target must have one type, got {} and {}", text(x), text(in[1]));
  return TensorType{x.dtype, {}};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  const auto off = b.sub(in[0], in[1]);
  return b.div(b.sum_all(b.mul(off, off)), b.full(1, {}, off.dtype(), element_count(off.shape())));
}

// dx = 2 (x - target) dy / n, dtarget = -dx
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::NoAttrs&) {
  const auto off = b.sub(ctx.in(0), ctx.in(1));
  const auto scale = b.div(b.mul(ctx.dout(0), 2), b.full(1, {}, off.dtype(), element_count(off.shape())));
  const auto dx = b.mul(off, scale);
  return {dx, ctx.wants(1) ? b.neg(dx) : ir::Value()};
}

static constexpr ir::Op<> spec = {
    .name = "mse",
    .doc =
        "Mean of the squared differences of all elements.\n\n"
        "Shape    both the same; the result has rank 0. Of nothing: NaN.\n"
        "DType    one float dtype.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument when the two differ in shape or dtype.",
    .inputs = {"x", "target"},
    .outputs = {"loss"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef mse = ir::define<spec>();

}  // namespace weft::ops

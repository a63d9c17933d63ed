#include <cmath>

#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ReduceAttrs& a) {
  WEFT_TRY([[maybe_unused]] const auto floats, ir::infer_float_unary("logsumexp", in));
  return ir::infer_reduce("logsumexp", in, a);
}

// An infinite maximum is not subtracted: inf - inf would be NaN, and exp of it is right without.
static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::ReduceAttrs& a) {
  const auto x = in[0], top = ir::finite_or_zero(b, ir::fold(b, "max", x, a.axes));
  const auto y = b.add(b.log(ir::fold(b, "sum", b.exp(b.sub(x, top)), a.axes)), top);
  return a.keep ? y : b.reshape(y, ir::infer_reduce("logsumexp", ir::Types(std::array{&x.type()}), a)->shape);
}

// dx = dy exp(x - y). Where all of x is -inf, so is y, and the gradient is 0.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ReduceAttrs& a) {
  const auto x = ctx.in(0);
  const auto kept = ir::kept_shape(x.shape(), a);
  const auto out = b.reshape(ctx.out(0), kept), y = b.where(b.equal(out, -INFINITY), 0, out);
  return {b.mul(b.exp(b.sub(x, y)), b.reshape(ctx.dout(0), kept))};
}

static constexpr ir::Op<ir::ReduceAttrs> spec = {
    .name = "logsumexp",
    .doc =
        "log(sum(exp(x))) over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    float; f16 and bf16 compute in f32. Of nothing: -inf.\n"
        "Numerics subtracts the maximum first, so no finite input overflows.\n"
        "Grad     needs input and output.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .saves = ir::saves::inputs | ir::saves::outputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef logsumexp = ir::define<spec>();

}  // namespace weft::ops

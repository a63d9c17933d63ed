#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ReduceAttrs& a) {
  return ir::infer_reduce("sum", in, a);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ReduceAttrs& a) {
  const auto& x = ctx.in_type(0).shape;
  return {b.broadcast(b.reshape(ctx.dout(0), ir::kept_shape(x, a)), x)};
}

static constexpr ir::Op<ir::ReduceAttrs> spec = {
    .name = "sum",
    .doc =
        "Sums over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    same as `x`; f16 and bf16 accumulate in f32 or better, integers wrap around.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef sum = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ReduceAttrs& a) {
  return ir::infer_reduce("max", in, a);
}

// Elements that equal the maximum share the gradient evenly, as PyTorch's amax does.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ReduceAttrs& a) {
  const auto x = ctx.in(0);
  const auto kept = ir::kept_shape(x.shape(), a);
  const auto hit = b.cast(b.equal(x, b.reshape(ctx.out(0), kept)), x.dtype());
  auto count = hit;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!(kept[static_cast<size_t>(i)] == x.shape()[static_cast<size_t>(i)])) count = b.sum(count, i);
  return {b.mul(hit, b.div(b.reshape(ctx.dout(0), kept), count))};
}

static constexpr ir::Op<ir::ReduceAttrs> spec = {
    .name = "max",
    .doc =
        "Largest element over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    same as `x`. A NaN wins. Of nothing: -inf, or the smallest integer.\n"
        "Grad     needs input and output; equal maxima share it evenly.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .saves = ir::saves::inputs | ir::saves::outputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef max = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ReduceAttrs& a) {
  WEFT_TRY([[maybe_unused]] const auto floats, ir::infer_float_unary("mean", in));
  return ir::infer_reduce("mean", in, a);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::ReduceAttrs& a) {
  const Dim n = ir::folded_count(in[0].shape(), a);
  const auto sum = b.one("sum", {in[0]}, {{"axes", a.axes}, {"keep", int64_t{a.keep}}});
  return b.div(sum, b.full(1, {}, sum.dtype(), n));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ReduceAttrs& a) {
  const auto& x = ctx.in_type(0);
  const auto each = b.div(ctx.dout(0), b.full(1, {}, x.dtype, ir::folded_count(x.shape, a)));
  return {b.broadcast(b.reshape(each, ir::kept_shape(x.shape, a)), x.shape)};
}

static constexpr ir::Op<ir::ReduceAttrs> spec = {
    .name = "mean",
    .doc =
        "Mean over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    float; f16 and bf16 compute in f32. Of nothing: NaN.\n"
        "Grad     needs nothing.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank).",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef mean = ir::define<spec>();

}  // namespace weft::ops

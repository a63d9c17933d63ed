#include "ops/shared/pieces.h"

namespace weft::ops {

struct VarianceAttrs {
  Shape axes;
  bool keep = false;
  int64_t correction = 0;
  static constexpr auto fields = ir::fields("axes", &VarianceAttrs::axes, "keep", &VarianceAttrs::keep,
                                            "correction", &VarianceAttrs::correction);
};

static Result<TensorType> infer(ir::Types in, const VarianceAttrs& a) {
  WEFT_TRY([[maybe_unused]] const auto floats, ir::infer_float_unary("variance", in));
  if (a.correction < 0) return invalid("variance: correction must not be negative, got {}", a.correction);
  return ir::infer_reduce("variance", in, {a.axes, a.keep});
}

// The divisor of the sum of squares.
static ir::Value divisor(ir::Builder& b, const TensorType& x, DType t, const VarianceAttrs& a) {
  return b.full(1, {}, t, max(ir::folded_count(x.shape, {a.axes, a.keep}) - Dim(a.correction), Dim(0)));
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const VarianceAttrs& a) {
  const auto x = in[0], centered = b.sub(x, ir::mean_over(b, x, a.axes));
  const auto sum = b.one("sum", {b.mul(centered, centered)}, {{"axes", a.axes}, {"keep", int64_t{a.keep}}});
  return b.div(sum, divisor(b, x.type(), x.dtype(), a));
}

// 2 (x - mean) dy / (n - correction): the contribution of the mean cancels.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const VarianceAttrs& a) {
  const auto x = ctx.in(0), dy = ctx.dout(0);
  const auto each = b.div(b.mul(dy, 2), divisor(b, x.type(), x.dtype(), a));
  const auto centered = b.sub(x, ir::mean_over(b, x, a.axes));
  const auto kept = ir::kept_shape(x.shape(), {a.axes, a.keep});
  return {b.mul(centered, b.reshape(each, kept))};
}

static constexpr ir::Op<VarianceAttrs> spec = {
    .name = "variance",
    .doc =
        "Mean squared distance from the mean over `axes`; over all of them when the list is empty.\n\n"
        "Shape    without the folded axes; with `keep` they stay, with size 1.\n"
        "DType    float; f16 and bf16 compute in f32. Of nothing: NaN.\n"
        "Numerics in two passes, so a large mean takes no digits. The sum is divided by n - `correction`: 0 "
        "for "
        "the\n"
        "         variance of these numbers, 1 for an estimate of that of what they were drawn from.\n"
        "Grad     needs the input.\n"
        "Errors   invalid_argument when an axis is outside [-rank, rank), or correction is negative.",
    .inputs = {"x"},
    .traits = ir::Trait::reduction,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef variance = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rules.h"

namespace weft::ops {

struct RmsNormAttrs {
  double epsilon = 1e-5;
  static constexpr auto fields = ir::fields("epsilon", &RmsNormAttrs::epsilon);
};

static Result<TensorType> infer(ir::Types in, const RmsNormAttrs&) {
  const auto &x = in[0], &weight = in[1];
  if (x.rank() < 1 || weight.dtype != x.dtype || !(weight.shape == Shape{x.shape.back()}))
    return invalid("rms_norm: wants x [..., n] and weight [n] of one dtype, got {} and {}", text(x),
                   text(weight));
  return ir::infer_float_unary("rms_norm", in);
}

// 1 / sqrt(mean(x * x) + epsilon), one for each row.
static ir::Value scale_of(ir::Builder& b, ir::Value x, double epsilon) {
  const auto mean = b.div(b.sum(b.mul(x, x), -1), b.full(1, {}, x.dtype(), x.shape().back()));
  return b.div(1, b.sqrt(b.add(mean, epsilon)));
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const RmsNormAttrs& a) {
  return b.mul(b.mul(in[0], scale_of(b, in[0], a.epsilon)), in[1]);
}

// With r = scale, h = x r and g = dy w: dx = r (g - h mean(g h)), dw = sum over rows of dy h.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const RmsNormAttrs& a) {
  const auto x = ctx.in(0), weight = ctx.in(1), dy = ctx.dout(0);
  const auto r = scale_of(b, x, a.epsilon), h = b.mul(x, r), g = b.mul(dy, weight);
  const auto mean = b.div(b.sum(b.mul(g, h), -1), b.full(1, {}, x.dtype(), x.shape().back()));
  return {b.mul(r, b.sub(g, b.mul(h, mean))), b.sum_to(b.mul(dy, h), ctx.in_type(1).shape)};
}

static constexpr ir::Op<RmsNormAttrs> spec = {
    .name = "rms_norm",
    .doc =
        "Divides each row of `x` by its root mean square and multiplies it by `weight`.\n\n"
        "Shape    x [..., n], weight [n]; same as `x`.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Zhang and Sennrich, Root mean square layer normalization (NeurIPS 2019).",
    .inputs = {"x", "weight"},
    .traits = ir::Trait::row_wise,
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef rms_norm = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/rms_norm.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::RmsNormAttrs&) {
  const auto &x = in[0], &weight = in[1];
  if (x.rank() < 1 || weight.dtype != x.dtype || !(weight.shape == Shape{x.shape.back()}))
    return invalid("rms_norm: wants x [..., n] and weight [n] of one dtype, got {} and {}", text(x),
                   text(weight));
  return ir::infer_float_unary("rms_norm", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::RmsNormAttrs& a) {
  return b.mul(b.mul(in[0], ir::rms_scale(b, in[0], a.epsilon)), in[1]);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::RmsNormAttrs& a) {
  auto g = b.call("rms_norm_grad", std::array{ctx.in(0), ctx.dout(0), ctx.in(1)}, {{"epsilon", a.epsilon}});
  if (!ctx.wants(1)) g[1] = ir::Value();
  return g;
}

static constexpr ir::Op<ir::RmsNormAttrs> spec = {
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

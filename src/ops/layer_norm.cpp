#include "ops/shared/pieces.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::LayerNormAttrs& a) {
  const auto& x = in[0];
  if (a.trailing < 1 || a.trailing > x.rank())
    return invalid("layer_norm: trailing must be in [1, {}], got {}", x.rank(), a.trailing);
  const TensorType row{x.dtype, Shape(x.shape.end() - a.trailing, x.shape.end())};
  for (size_t i : {1, 2})
    if (in.has(i) && !(in[i] == row))
      return invalid("layer_norm: {} must be {}, got {}", i == 1 ? "weight" : "bias", text(row), text(in[i]));
  return ir::infer_float_unary("layer_norm", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::LayerNormAttrs& a) {
  const auto x = in[0];
  const Shape row(x.shape().end() - a.trailing, x.shape().end());
  return ir::affine(b, ir::normalize(b, x, ir::last_axes(a), a.epsilon).h, in[1], in[2], row);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::LayerNormAttrs& a) {
  const auto weight = ctx.has(1) ? ctx.in(1) : ir::Value();
  auto g = b.call("layer_norm_grad", std::array{ctx.in(0), ctx.dout(0), weight},
                  {{"trailing", a.trailing}, {"epsilon", a.epsilon}});
  for (int i = 1; i < 3; ++i)
    if (!ctx.wants(i)) g[static_cast<size_t>(i)] = ir::Value();
  return g;
}

static constexpr ir::Op<ir::LayerNormAttrs> spec = {
    .name = "layer_norm",
    .doc =
        "Gives the last axes of `x` mean 0 and variance 1, then scales by `weight` and adds `bias`.\n\n"
        "Shape    same as `x`; weight and bias as its last `trailing` axes, which are normalized together.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics (x - mean) / sqrt(variance + epsilon), the variance in a second pass.\n"
        "Grad     needs `x` and `weight`.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Ba, Kiros and Hinton, Layer normalization (2016).",
    .inputs = {"x", "weight", "bias"},
    .n_optional = 2,
    .saves = ir::saves::input(0) | ir::saves::input(1),
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef layer_norm = ir::define<spec>();

}  // namespace weft::ops

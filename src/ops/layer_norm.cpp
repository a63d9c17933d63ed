#include "ir/recipes.h"

namespace weft::ops {

struct LayerNormAttrs {
  int64_t trailing = 1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      ir::fields("trailing", &LayerNormAttrs::trailing, "epsilon", &LayerNormAttrs::epsilon);
};

static Shape last_axes(const LayerNormAttrs& a) {
  Shape axes;
  for (int64_t d = -a.trailing; d < 0; ++d) axes.push_back(d);
  return axes;
}

static Result<TensorType> infer(ir::Types in, const LayerNormAttrs& a) {
  const auto& x = in[0];
  if (a.trailing < 1 || a.trailing > x.rank())
    return invalid("layer_norm: trailing must be in [1, {}], got {}", x.rank(), a.trailing);
  const TensorType row{x.dtype, Shape(x.shape.end() - a.trailing, x.shape.end())};
  for (size_t i : {1, 2})
    if (in.has(i) && !(in[i] == row))
      return invalid("layer_norm: {} must be {}, got {}", i == 1 ? "weight" : "bias", text(row), text(in[i]));
  return ir::infer_float_unary("layer_norm", in);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const LayerNormAttrs& a) {
  const auto x = in[0];
  const Shape row(x.shape().end() - a.trailing, x.shape().end());
  return ir::affine(b, ir::normalize(b, x, last_axes(a), a.epsilon).h, in[1], in[2], row);
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const LayerNormAttrs& a) {
  const auto axes = last_axes(a);
  const auto dy = ir::widened(b, ctx.dout(0));
  const auto n = ir::normalize(b, ir::widened(b, ctx.in(0)), axes, a.epsilon);
  const auto g = ctx.has(1) ? b.mul(dy, ir::widened(b, ctx.in(1))) : dy;
  const auto narrow = [&](ir::Value v) { return b.cast(v, ctx.in_type(0).dtype); };
  ir::Grads out(3);
  if (ctx.wants(0)) out[0] = narrow(ir::normalize_grad(b, n, g, axes));
  if (ctx.wants(1)) out[1] = narrow(b.sum_to(b.mul(dy, n.h), ctx.in_type(1).shape));
  if (ctx.wants(2)) out[2] = narrow(b.sum_to(dy, ctx.in_type(2).shape));
  return out;
}

static constexpr ir::Op<LayerNormAttrs> spec = {
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

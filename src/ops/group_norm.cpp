#include "ops/shared/pieces.h"

namespace weft::ops {

struct GroupNormAttrs {
  int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      ir::fields("groups", &GroupNormAttrs::groups, "epsilon", &GroupNormAttrs::epsilon);
};

static Result<TensorType> infer(ir::Types in, const GroupNormAttrs& a) {
  WEFT_TRY(const auto y, ir::infer_channels("group_norm", in, {"x", "weight", "bias"}));
  const Dim channels = y.shape[1];
  if (!channels.is_const() || a.groups < 1 || channels.value() % a.groups != 0)
    return invalid("group_norm: channels must be a multiple of groups, got {} and {}", channels.text(),
                   a.groups);
  return y;
}

// x as [n, groups, all of a group].
static Shape grouped(const Shape& x, int64_t groups) {
  return {x[0], groups, element_count(std::span(x).subspan(2)) * Dim(x[1].value() / groups)};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const GroupNormAttrs& a) {
  const auto x = in[0];
  const auto n = ir::normalize(b, b.reshape(x, grouped(x.shape(), a.groups)), {2}, a.epsilon);
  return ir::affine(b, b.reshape(n.h, x.shape()), in[1], in[2], ir::channel_shape(x.shape()));
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const GroupNormAttrs& a) {
  const Shape shape = ctx.in_type(0).shape, groups = grouped(shape, a.groups);
  const auto x = ctx.in(0), dy = ctx.dout(0);
  const auto n = ir::normalize(b, b.reshape(x, groups), {2}, a.epsilon);
  const auto g = ctx.has(1) ? ir::affine(b, dy, ctx.in(1), {}, ir::channel_shape(shape)) : dy;
  const auto shaped = [&](ir::Value v, int i) { return b.reshape(v, ctx.in_type(i).shape); };
  const auto total = [&](ir::Value v) { return b.sum_to(v, ir::channel_shape(shape)); };
  ir::Grads out(3);
  if (ctx.wants(0)) out[0] = shaped(ir::normalize_grad(b, n, b.reshape(g, groups), {2}), 0);
  if (ctx.wants(1)) out[1] = shaped(total(b.mul(dy, b.reshape(n.h, shape))), 1);
  if (ctx.wants(2)) out[2] = shaped(total(dy), 2);
  return out;
}

static constexpr ir::Op<GroupNormAttrs> spec = {
    .name = "group_norm",
    .doc =
        "Gives each group of channels of each sample mean 0 and variance 1, then scales and shifts each "
        "channel.\n\n"
        "Shape    same as `x` [n, channels, ...]; weight and bias [channels]. `groups` = channels is "
        "instance "
        "norm.\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics (x - mean) / sqrt(variance + epsilon), the variance in a second pass.\n"
        "Grad     needs `x` and `weight`.\n"
        "Errors   invalid_argument for shapes and dtypes, and unless groups divides channels.\n"
        "Source   Wu and He, Group normalization (ECCV 2018).",
    .inputs = {"x", "weight", "bias"},
    .n_optional = 2,
    .saves = ir::saves::input(0) | ir::saves::input(1),
    .infer = infer,
    .decompose = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef group_norm = ir::define<spec>();

}  // namespace weft::ops

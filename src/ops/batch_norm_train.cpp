#include "ops/shared/pieces.h"

namespace weft::ops {

struct BatchNormTrainAttrs {
  double momentum = 0.1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      ir::fields("momentum", &BatchNormTrainAttrs::momentum, "epsilon", &BatchNormTrainAttrs::epsilon);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const BatchNormTrainAttrs&) {
  WEFT_TRY(auto y, ir::infer_channels("batch_norm_train", in,
                                      {"x", "running_mean", "running_variance", "weight", "bias"}));
  return std::vector<TensorType>{std::move(y), in[1], in[2]};
}

// All axes but that of the channels.
static Shape other_axes(int64_t rank) {
  Shape axes = {0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  return axes;
}

// The running statistics move toward those of the batch, with the unbiased estimate of the variance.
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const BatchNormTrainAttrs& a) {
  const auto x = in[0];
  const auto axes = other_axes(x.rank());
  const auto mean = b.one("mean", {x}, {{"axes", axes}});
  const auto variance = b.one("variance", {x}, {{"axes", axes}, {"correction", int64_t{1}}});
  const auto moved = [&](ir::Value running, ir::Value batch) {
    return b.add(b.mul(running, 1 - a.momentum), b.mul(batch, a.momentum));
  };
  const auto h = ir::normalize(b, x, axes, a.epsilon).h;
  return {ir::affine(b, h, in[3], in[4], ir::channel_shape(x.shape())), moved(in[1], mean),
          moved(in[2], variance)};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const BatchNormTrainAttrs& a) {
  const auto axes = other_axes(ctx.in_type(0).rank());
  const auto shape = ir::channel_shape(ctx.in_type(0).shape);
  const auto x = ctx.in(0), dy = ctx.dout(0);
  const auto n = ir::normalize(b, x, axes, a.epsilon);
  const auto g = ctx.has(3) ? ir::affine(b, dy, ctx.in(3), {}, shape) : dy;
  const auto shaped = [&](ir::Value v, int i) { return b.reshape(v, ctx.in_type(i).shape); };
  ir::Grads out(5);
  for (const int running : {1, 2})  // y does not depend on them
    if (ctx.wants(running))
      out[static_cast<size_t>(running)] = b.full(0, ctx.in_type(running).shape, ctx.in_type(running).dtype);
  if (ctx.wants(0)) out[0] = shaped(ir::normalize_grad(b, n, g, axes), 0);
  if (ctx.wants(3)) out[3] = shaped(b.sum_to(b.mul(dy, n.h), shape), 3);
  if (ctx.wants(4)) out[4] = shaped(b.sum_to(dy, shape), 4);
  return out;
}

static constexpr ir::Op<BatchNormTrainAttrs> spec = {
    .name = "batch_norm_train",
    .doc =
        "Gives each channel mean 0 and variance 1 over the batch, then scales and shifts it.\n\n"
        "Shape    same as `x` [n, channels, ...]; all others [channels].\n"
        "DType    one float dtype; f16 and bf16 compute in f32.\n"
        "Numerics the running statistics, which batch_norm takes after training, move in place: (1 - "
        "momentum) "
        "running +\n"
        "         momentum batch, with the variance over n - 1. What normalizes is over n.\n"
        "Grad     needs `x` and `weight`; that of the running statistics is 0.\n"
        "Errors   invalid_argument for shapes and dtypes.\n"
        "Source   Ioffe and Szegedy, Batch normalization (ICML 2015).",
    .inputs = {"x", "running_mean", "running_variance", "weight", "bias"},
    .outputs = {"y", "new_mean", "new_variance"},
    .n_optional = 2,
    .saves = ir::saves::input(0) | ir::saves::input(3),
    .updates = {ir::UpdateRule{1, 1}, ir::UpdateRule{2, 2}},
    .infer_many = infer,
    .decompose_many = decompose,
    .grad = grad,
};
extern constinit const ir::OpDef batch_norm_train = ir::define<spec>();

}  // namespace weft::ops

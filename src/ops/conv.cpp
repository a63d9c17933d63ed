#include "ops/shared/conv.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::ConvAttrs& a) {
  const auto &x = in[0], &w = in[1];
  WEFT_TRY(const auto windows, ir::conv_windows("conv", x, w, w.shape, a));
  WEFT_TRY(Shape shape, ir::conv_shape("conv", x.shape, w.shape, windows, a.groups));
  return TensorType{x.dtype, std::move(shape)};
}

static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::ConvAttrs& a) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = ir::conv_transpose(b, dy, ctx.in(1), a, ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = ir::conv_weight_grad(b, ctx.in(0), dy, a, ctx.in_type(1).shape);
  return g;
}

static constexpr ir::Op<ir::ConvAttrs> spec = {
    .name = "conv",
    .doc =
        "Slides the kernels `w` over the last one to three axes of `x` (a correlation: nothing is "
        "flipped).\n\n"
        "Shape    x [n, c, size...], w [o, c / groups, k...] -> [n, o, count...] with\n"
        "         count = floor((size + before + after - dilation * (k - 1) - 1) / stride) + 1. `padding` "
        "is\n"
        "         before, after for each spatial axis; an empty list means 1 (padding: 0) everywhere.\n"
        "         Output channels are cut into `groups` equal parts, each of which sees its part of c.\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Numerics padding is zero; an infinite weight that meets it may give NaN or nothing.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument for shapes, lists of another length, and windows wider than the padded "
        "axis.",
    .inputs = {"x", "w"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef conv = ir::define<spec>();

}  // namespace weft::ops

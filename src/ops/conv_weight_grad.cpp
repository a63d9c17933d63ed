#include "ops/shared/conv.h"

namespace weft::ops {

struct ConvWeightGradAttrs : ir::ConvAttrs {
  Shape kernel;
  static constexpr auto fields =
      std::tuple_cat(ir::fields("kernel", &ConvWeightGradAttrs::kernel), ir::ConvAttrs::fields);
};

static Result<TensorType> infer(ir::Types in, const ConvWeightGradAttrs& a) {
  const auto &x = in[0], &dy = in[1];
  if (x.rank() < 3 || dy.rank() != x.rank() || a.groups < 1)
    return invalid(
        "conv_weight_grad: wants x [n, c, size...], dy [n, o, count...] and groups >= 1, got {}, {} and {}",
        text(x), text(dy), a.groups);
  Shape weight{dy.shape[1], floor_div(x.shape[1], a.groups)};
  for (const Dim k : a.kernel) weight.push_back(k);
  WEFT_TRY(const auto windows, ir::conv_windows("conv_weight_grad", x, dy, weight, a));
  WEFT_TRY(const Shape wanted, ir::conv_shape("conv_weight_grad", x.shape, weight, windows, a.groups));
  if (!(dy.shape == wanted))
    return invalid("conv_weight_grad: a conv of {} with kernel {} gives {}, got dy {}", text(x),
                   text(a.kernel), text(wanted), text(dy));
  return TensorType{x.dtype, std::move(weight)};
}

// The result takes the role of w in a conv.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ConvWeightGradAttrs& a) {
  const auto dw = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = ir::conv_transpose(b, ctx.in(1), dw, a, ctx.in_type(0).shape);
  if (ctx.wants(1)) g[1] = ir::conv(b, ctx.in(0), dw, a);
  return g;
}

static constexpr ir::Op<ConvWeightGradAttrs> spec = {
    .name = "conv_weight_grad",
    .doc =
        "The gradient of conv(x, w) for w: what each element of a kernel met in `x`, times `dy`.\n\n"
        "Shape    x [n, c, size...], dy [n, o, count...] -> [o, c / groups, kernel...]; attributes as in "
        "conv.\n"
        "         `kernel` is the spatial shape of w, which the sizes alone do not tell.\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument unless a conv of x with such a kernel has the shape of dy.",
    .inputs = {"x", "dy"},
    .outputs = {"dw"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef conv_weight_grad = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/conv.h"

namespace weft::ops {

struct ConvTransposeAttrs : ir::ConvAttrs {
  Shape output_padding;
  static constexpr auto fields = std::tuple_cat(
      ir::ConvAttrs::fields, ir::fields("output_padding", &ConvTransposeAttrs::output_padding));
};

static Result<TensorType> infer(ir::Types in, const ConvTransposeAttrs& a) {
  const auto &x = in[0], &w = in[1];
  WEFT_TRY(const auto windows, ir::conv_windows("conv_transpose", x, w, w.shape, a));
  if (!(x.shape[1] == w.shape[0]))
    return invalid("conv_transpose: x has {} channels, w takes {}", x.shape[1].text(), w.shape[0].text());
  if (!a.output_padding.empty() && a.output_padding.size() != windows.size())
    return invalid("conv_transpose: wants an output_padding for each of {} spatial axes, got {}",
                   windows.size(), text(a.output_padding));
  TensorType y{x.dtype, {x.shape[0], w.shape[1] * Dim(a.groups)}};
  for (size_t i = 0; i < windows.size(); ++i) {
    const Dim more = a.output_padding.empty() ? Dim(0) : a.output_padding[i];
    if (more.is_const() && (more.value() < 0 || more.value() >= windows[i].stride))
      return invalid("conv_transpose: output_padding must be in 0..stride - 1, got {} for stride {}",
                     more.value(), windows[i].stride);
    y.shape.push_back(windows[i].least(x.shape[2 + i]) + more);
    if (y.shape.back().min() < 0)
      return invalid("conv_transpose: padding takes more than there is along spatial axis {} of {}", i,
                     text(x));
  }
  return y;
}

// y takes the role of x in a conv, so its gradient goes through that conv.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ConvTransposeAttrs& a) {
  const auto dy = ctx.dout(0);
  ir::Grads g(2);
  if (ctx.wants(0)) g[0] = ir::conv(b, dy, ctx.in(1), a);
  if (ctx.wants(1)) g[1] = ir::conv_weight_grad(b, dy, ctx.in(0), a, ctx.in_type(1).shape);
  return g;
}

static constexpr ir::Op<ConvTransposeAttrs> spec = {
    .name = "conv_transpose",
    .doc =
        "Adds up `w`, scaled by each element of `x`, where a conv with these attributes would have read: its "
        "gradient for x.\n\n"
        "Shape    x [n, o, size...], w [o, c / groups, k...] -> [n, c, length...] with length =\n"
        "         (size - 1) * stride + dilation * (k - 1) + 1 - before - after + output_padding.\n"
        "         `output_padding` (0..stride - 1) tells apart the lengths of which conv makes one size.\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument for shapes, lists of another length and a length below 0.",
    .inputs = {"x", "w"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef conv_transpose = ir::define<spec>();

}  // namespace weft::ops

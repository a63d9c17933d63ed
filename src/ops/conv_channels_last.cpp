#include "ops/shared/conv.h"

namespace weft::ops {

// The order of axes that makes [n, c, size...] of [n, size..., c], and back.
static Shape to_channels_first(int64_t rank) {
  Shape axes = {0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) axes.push_back(d);
  return axes;
}
static Shape to_channels_last(int64_t rank) {
  Shape axes = {0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  axes.push_back(1);
  return axes;
}
static Shape permuted(const Shape& shape, const Shape& axes) {
  Shape to;
  for (const Dim axis : axes) to.push_back(shape[static_cast<size_t>(axis.value())]);
  return to;
}

static Result<TensorType> infer(ir::Types in, const ir::ConvAttrs& a) {
  const auto &x = in[0], &w = in[1];
  if (x.rank() < 3 || x.rank() > 5)
    return invalid("conv_channels_last: wants one to three spatial axes between two others, got {}", text(x));
  const TensorType first{x.dtype, permuted(x.shape, to_channels_first(x.rank()))};
  WEFT_TRY(const auto windows, ir::conv_windows("conv_channels_last", first, w, w.shape, a));
  WEFT_TRY(const Shape shape, ir::conv_shape("conv_channels_last", first.shape, w.shape, windows, a.groups));
  return TensorType{x.dtype, permuted(shape, to_channels_last(x.rank()))};
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const ir::ConvAttrs& a) {
  const int64_t rank = in[0].type().rank();
  const auto x = b.one("permute", {in[0]}, {{"axes", to_channels_first(rank)}});
  return b.one("permute", {ir::conv(b, x, in[1], a)}, {{"axes", to_channels_last(rank)}});
}

static constexpr ir::Op<ir::ConvAttrs> spec = {
    .name = "conv_channels_last",
    .doc =
        "`conv` of an `x` whose channels lie side by side, with such a result; for kernels that read them "
        "so.\n\n"
        "Shape    x [n, size..., c], w [o, c / groups, k...] -> [n, count..., o]; attributes and counts as "
        "in "
        "conv.\n"
        "DType    one float dtype; accumulates in f32 or better.\n"
        "Numerics as conv.\n"
        "Grad     needs both inputs.\n"
        "Errors   invalid_argument for shapes, lists of another length, and windows wider than the padded "
        "axis.",
    .inputs = {"x", "w"},
    .saves = ir::saves::inputs,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef conv_channels_last = ir::define<spec>();

}  // namespace weft::ops

#include <cmath>

#include "ops/shared/pool.h"

namespace weft::ops {

struct MaxPoolAttrs {
  Shape kernel, stride, padding, dilation;
  bool ceil_mode = false;
  static constexpr auto fields = ir::fields("kernel", &MaxPoolAttrs::kernel, "stride", &MaxPoolAttrs::stride,
                                            "padding", &MaxPoolAttrs::padding, "dilation",
                                            &MaxPoolAttrs::dilation, "ceil_mode", &MaxPoolAttrs::ceil_mode);
};

static Result<ir::Windows> windows_of(const TensorType& x, const MaxPoolAttrs& a) {
  return ir::pool_windows("max_pool", x, a.kernel, a.stride, a.padding, a.dilation, a.ceil_mode);
}

static Result<TensorType> infer(ir::Types in, const MaxPoolAttrs& a) {
  WEFT_TRY(const auto windows, windows_of(in[0], a));
  return ir::infer_pool("max_pool", in, windows);
}

// Picked by position, so that the gradient goes to the first of equal maxima.
static ir::Value decompose(ir::Builder& b, ir::Values in, const MaxPoolAttrs& a) {
  const auto windows = windows_of(in[0].type(), a).value();  // infer has checked them
  const auto all = ir::window_elements(b, in[0], windows, -INFINITY);
  const auto best = b.one("argmax", {all}, {{"axis", int64_t{-1}}});
  return b.gather(all, best, best.rank(), best.rank());
}

static constexpr ir::Op<MaxPoolAttrs> spec = {
    .name = "max_pool",
    .doc =
        "The largest element of each window over the last axes.\n\n"
        "Shape    x [..., size...] -> [..., count...], one axis for each entry of `kernel`; count as in "
        "conv, without\n"
        "         a rest. An empty `stride` is the kernel, `padding` is before, after for each axis. With\n"
        "         `ceil_mode`, elements left over at the end get one more window, if it begins before the\n"
        "         padding after x.\n"
        "DType    floats. Padding is -inf; a NaN wins.\n"
        "Grad     by the decomposition: the first of equal maxima gets it, as in PyTorch.\n"
        "Errors   invalid_argument for lists of another length, without `ceil_mode` windows wider than the "
        "axis, and\n"
        "         with `ceil_mode` padding as wide as a window.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef max_pool = ir::define<spec>();

}  // namespace weft::ops

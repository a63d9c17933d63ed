#include <cmath>

#include "ir/conv.h"

namespace weft::ops {

struct MaxPoolAttrs {
  Shape kernel, stride, padding, dilation;
  static constexpr auto fields =
      ir::fields("kernel", &MaxPoolAttrs::kernel, "stride", &MaxPoolAttrs::stride, "padding",
                 &MaxPoolAttrs::padding, "dilation", &MaxPoolAttrs::dilation);
};

static Result<ir::Windows> windows_of(const TensorType& x, const MaxPoolAttrs& a) {
  if (a.kernel.empty() || a.kernel.size() > x.shape.size())
    return invalid("max_pool: wants a kernel over some of the last axes of {}, got {}", text(x),
                   text(a.kernel));
  return ir::windows("max_pool", a.kernel, a.stride.empty() ? a.kernel : a.stride, a.padding, a.dilation);
}

static Result<TensorType> infer(ir::Types in, const MaxPoolAttrs& a) {
  WEFT_TRY(const auto windows, windows_of(in[0], a));
  WEFT_TRY(Shape shape, ir::pooled_shape("max_pool", in[0].shape, windows));
  WEFT_TRY(TensorType y, ir::infer_float_unary("max_pool", in));
  y.shape = std::move(shape);
  return y;
}

// [..., size] -> [..., count, kernel], axis by axis; then the windows' own axes become the last one.
static ir::Value decompose(ir::Builder& b, ir::Values in, const MaxPoolAttrs& a) {
  auto x = in[0];
  const auto windows = windows_of(x.type(), a).value();  // infer has checked them
  const auto lead = static_cast<int64_t>(x.shape().size() - windows.size());
  Shape counts(x.shape().begin(), x.shape().begin() + lead), order;
  Dim elements = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto& w = windows[i];
    const int64_t axis = lead + 2 * static_cast<int64_t>(i);
    counts.push_back(w.count(x.shape()[static_cast<size_t>(axis)]));
    elements = elements * w.kernel;
    x = b.one("pad", {x},
              {{"axis", axis}, {"before", Shape{w.before}}, {"after", Shape{w.after}}, {"value", -INFINITY}});
    x = b.gather(x, ir::window_places(b, w, counts.back()), axis, 0);
  }
  for (int64_t d = 0; d < lead; ++d) order.push_back(d);
  for (const int64_t first : {int64_t{0}, int64_t{1}})
    for (size_t i = 0; i < windows.size(); ++i) order.push_back(lead + 2 * static_cast<int64_t>(i) + first);
  Shape flat = counts;
  flat.push_back(elements);
  const auto all = b.reshape(b.one("permute", {x}, {{"axes", order}}), flat);
  // Picked by position, so that the gradient goes to the first of equal maxima.
  const auto best = b.one("argmax", {all}, {{"axis", int64_t{-1}}});
  return b.gather(all, best, best.rank(), best.rank());
}

static constexpr ir::Op<MaxPoolAttrs> spec = {
    .name = "max_pool",
    .doc =
        "The largest element of each window over the last axes.\n\n"
        "Shape    x [..., size...] -> [..., count...], one axis for each entry of `kernel`; count as in "
        "conv, without\n"
        "         a rest. An empty `stride` is the kernel, `padding` is before, after for each axis.\n"
        "DType    floats. Padding is -inf; a NaN wins.\n"
        "Grad     by the decomposition: the first of equal maxima gets it, as in PyTorch.\n"
        "Errors   invalid_argument for lists of another length and windows wider than the padded axis.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef max_pool = ir::define<spec>();

}  // namespace weft::ops

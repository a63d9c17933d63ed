#include "ops/shared/pool.h"

namespace weft::ops {

struct AvgPoolAttrs {
  Shape kernel, stride, padding;
  bool count_include_pad = true, ceil_mode = false;
  static constexpr auto fields = ir::fields(
      "kernel", &AvgPoolAttrs::kernel, "stride", &AvgPoolAttrs::stride, "padding", &AvgPoolAttrs::padding,
      "count_include_pad", &AvgPoolAttrs::count_include_pad, "ceil_mode", &AvgPoolAttrs::ceil_mode);
};

static Result<ir::Windows> windows_of(const TensorType& x, const AvgPoolAttrs& a) {
  return ir::pool_windows("avg_pool", x, a.kernel, a.stride, a.padding, {}, a.ceil_mode);
}

static Result<TensorType> infer(ir::Types in, const AvgPoolAttrs& a) {
  if (a.kernel.size() > 3)
    return invalid("avg_pool: wants a kernel over one to three axes, got {}", text(a.kernel));
  WEFT_TRY(const auto windows, windows_of(in[0], a));
  return ir::infer_pool("avg_pool", in, windows);
}

// [..., count...]: a conv with ones, over one channel. Its windows end within the padding; others are
// gathered.
static ir::Value sums(ir::Builder& b, ir::Value x, const ir::Windows& windows, const AvgPoolAttrs& a) {
  if (a.ceil_mode) return b.one("sum", {ir::window_elements(b, x, windows, 0)}, {{"axes", Shape{x.rank()}}});
  Shape shape(x.shape().begin(), x.shape().end() - a.kernel.size());
  Shape images = {element_count(shape), 1}, kernel = {1, 1};
  for (size_t i = shape.size(); i < x.shape().size(); ++i) images.push_back(x.shape()[i]);
  for (const Dim k : a.kernel) kernel.push_back(k);
  ir::ConvAttrs conv;
  conv.stride = a.stride.empty() ? a.kernel : a.stride, conv.padding = a.padding;
  const auto y = ir::conv(b, b.reshape(x, images), b.full(1, kernel, x.dtype()), conv);
  for (size_t i = 2; i < y.shape().size(); ++i) shape.push_back(y.shape()[i]);
  return b.reshape(y, shape);
}

// The number of elements in each window along an axis, with or without padding: [count].
static ir::Value lengths(ir::Builder& b, const ir::Window& w, Dim size, bool padding) {
  const auto number = [&](Dim d) { return b.full(1, {}, DType::i32, d); };
  const auto i = b.one("iota", {}, {{"size", Shape{w.count(size)}}});
  const auto first = b.sub(b.mul(i, number(w.stride)), number(w.before));
  const auto end = b.minimum(b.add(first, number(w.kernel)), number(padding ? size + w.after : size));
  return b.maximum(b.sub(end, padding ? first : b.maximum(first, 0)), 0);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const AvgPoolAttrs& a) {
  const auto x = in[0];
  const auto windows = windows_of(x.type(), a).value();  // infer has checked them
  const auto y = sums(b, x, windows, a);
  if (a.count_include_pad && !a.ceil_mode) return b.div(y, b.full(1, {}, x.dtype(), element_count(a.kernel)));
  const size_t lead = x.shape().size() - windows.size();
  auto counts = b.full(1, {}, x.dtype());
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto n = lengths(b, windows[i], x.shape()[lead + i], a.count_include_pad);
    Shape along(windows.size() - i, Dim(1));
    along[0] = n.shape()[0];
    counts = b.mul(counts, b.reshape(b.cast(n, x.dtype()), along));
  }
  return b.div(y, counts);
}

static constexpr ir::Op<AvgPoolAttrs> spec = {
    .name = "avg_pool",
    .doc =
        "The mean of each window over the last one to three axes.\n\n"
        "Shape    x [..., size...] -> [..., count...], one axis for each entry of `kernel`; count as in "
        "conv, without\n"
        "         a rest. An empty `stride` is the kernel, `padding` is before, after for each axis. With\n"
        "         `ceil_mode`, elements left over at the end get one more window, if it begins before the\n"
        "         padding after x.\n"
        "DType    floats; f16 and bf16 compute in f32.\n"
        "Numerics divides by the number of elements of x and its padding in the window, or without\n"
        "         `count_include_pad` by that of x alone; a window of nothing but padding is then NaN.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for lists of another length, without `ceil_mode` windows wider than the "
        "axis, and\n"
        "         with `ceil_mode` padding as wide as a window.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef avg_pool = ir::define<spec>();

}  // namespace weft::ops

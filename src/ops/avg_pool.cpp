#include "ir/pool.h"

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

// The sum of a window is a conv with ones, over one channel; and so is the number of elements in it that
// count.
class Sums {
 public:
  Sums(ir::Builder& b, const TensorType& x, const AvgPoolAttrs& a)
      : b_(b), dtype_(x.dtype), windows_(windows_of(x, a).value()) {  // infer has checked them
    conv_.stride = a.stride.empty() ? a.kernel : a.stride, conv_.padding = a.padding;
    sizes_ = Shape(x.shape.end() - a.kernel.size(), x.shape.end());
    for (const Dim k : a.kernel) kernel_.push_back(k);
  }

  /// x [images, 1, size...] -> [images, 1, count...]
  ir::Value of(ir::Value x) const { return ir::conv(b_, reached(x), b_.full(1, kernel_, dtype_), conv_); }
  /// How many elements of x each window holds, and how many of the padding too: [1, 1, count...].
  ir::Value elements() const { return of(ones(sizes_)); }
  ir::Value padded_elements() const {
    Shape padded;
    for (size_t i = 0; i < sizes_.size(); ++i)
      padded.push_back(sizes_[i] + (windows_[i].before + windows_[i].after));
    ir::ConvAttrs bare = conv_;
    bare.padding = {};
    return ir::conv(b_, reached(ones(padded)), b_.full(1, kernel_, dtype_), bare);
  }
  /// Do all windows end within x and its padding?
  bool all_within() const {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (!(windows_[i].beyond(sizes_[i]) == Dim(0))) return false;
    return true;
  }

 private:
  ir::Value ones(const Shape& sizes) const {
    Shape shape = {1, 1};
    for (const Dim d : sizes) shape.push_back(d);
    return b_.full(1, shape, dtype_);
  }
  /// Zeros behind x, as far as the last windows reach.
  ir::Value reached(ir::Value x) const {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (const Dim beyond = windows_[i].beyond(sizes_[i]); !(beyond == Dim(0)))
        x = b_.one("pad", {x}, {{"axis", static_cast<int64_t>(i) + 2}, {"after", Shape{beyond}}});
    return x;
  }

  ir::Builder& b_;
  DType dtype_;
  ir::Windows windows_;
  ir::ConvAttrs conv_;
  Shape sizes_, kernel_ = {1, 1};
};

static ir::Value decompose(ir::Builder& b, ir::Values in, const AvgPoolAttrs& a) {
  const auto x = in[0];
  const Sums sums(b, x.type(), a);
  Shape shape(x.shape().begin(), x.shape().end() - a.kernel.size());
  Shape images = {element_count(shape), 1};
  for (size_t i = shape.size(); i < x.shape().size(); ++i) images.push_back(x.shape()[i]);
  const auto counts = !a.count_include_pad ? sums.elements()
                      : sums.all_within()  ? b.full(1, {}, x.dtype(), element_count(a.kernel))
                                           : sums.padded_elements();
  const auto y = b.div(sums.of(b.reshape(x, images)), counts);
  for (size_t i = 2; i < y.shape().size(); ++i) shape.push_back(y.shape()[i]);
  return b.reshape(y, shape);
}

static constexpr ir::Op<AvgPoolAttrs> spec = {
    .name = "avg_pool",
    .doc =
        "The mean of each window over the last one to three axes.\n\n"
        "Shape    x [..., size...] -> [..., count...], one axis for each entry of `kernel`; count as in "
        "conv, without\n"
        "         a rest. An empty `stride` is the kernel, `padding` is before, after for each axis. With\n"
        "         `ceil_mode`, what the windows leave over gets one more, if it begins before the padding "
        "behind x.\n"
        "DType    floats; f16 and bf16 compute in f32.\n"
        "Numerics divides by the number of elements of x and its padding in the window, or without\n"
        "         `count_include_pad` by that of x alone; a window of nothing but padding is then NaN.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for lists of another length, windows wider than the padded axis, and\n"
        "         with `ceil_mode` padding as wide as a window.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef avg_pool = ir::define<spec>();

}  // namespace weft::ops

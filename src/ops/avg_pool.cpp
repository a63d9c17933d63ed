#include "ir/pool.h"

namespace weft::ops {

struct AvgPoolAttrs {
  Shape kernel, stride, padding;
  bool count_include_pad = true;
  static constexpr auto fields =
      ir::fields("kernel", &AvgPoolAttrs::kernel, "stride", &AvgPoolAttrs::stride, "padding",
                 &AvgPoolAttrs::padding, "count_include_pad", &AvgPoolAttrs::count_include_pad);
};

static Result<TensorType> infer(ir::Types in, const AvgPoolAttrs& a) {
  if (a.kernel.size() > 3)
    return invalid("avg_pool: wants a kernel over one to three axes, got {}", text(a.kernel));
  WEFT_TRY(const auto windows, ir::pool_windows("avg_pool", in[0], a.kernel, a.stride, a.padding, {}));
  return ir::infer_pool("avg_pool", in, windows);
}

// The sum of a window is a conv with ones, over one channel; and so is the number of elements in it.
static ir::Value decompose(ir::Builder& b, ir::Values in, const AvgPoolAttrs& a) {
  const auto x = in[0];
  const Shape whole = x.shape(), sizes(whole.end() - a.kernel.size(), whole.end());
  Shape shape(whole.begin(), whole.end() - a.kernel.size());
  Shape one = {1, 1}, images = {element_count(shape), 1};
  for (const Dim d : sizes) one.push_back(d), images.push_back(d);
  Shape kernel = {1, 1};
  Dim n = 1;
  for (const Dim k : a.kernel) kernel.push_back(k), n = n * k;
  ir::ConvAttrs conv;
  conv.stride = a.stride.empty() ? a.kernel : a.stride, conv.padding = a.padding;
  const auto ones = b.full(1, kernel, x.dtype());
  const auto sums = ir::conv(b, b.reshape(x, images), ones, conv);
  const auto counts =
      a.count_include_pad ? b.full(1, {}, x.dtype(), n) : ir::conv(b, b.full(1, one, x.dtype()), ones, conv);
  const auto y = b.div(sums, counts);
  for (size_t i = 2; i < y.shape().size(); ++i) shape.push_back(y.shape()[i]);
  return b.reshape(y, shape);
}

static constexpr ir::Op<AvgPoolAttrs> spec = {
    .name = "avg_pool",
    .doc =
        "The mean of each window over the last one to three axes.\n\n"
        "Shape    x [..., size...] -> [..., count...], one axis for each entry of `kernel`; count as in "
        "conv, without\n"
        "         a rest. An empty `stride` is the kernel, `padding` is before, after for each axis.\n"
        "DType    floats; f16 and bf16 compute in f32.\n"
        "Numerics divides by the size of the kernel, or by the number of elements that are no padding "
        "unless\n"
        "         `count_include_pad`; a window of nothing but padding is then NaN.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument for lists of another length and windows wider than the padded axis.",
    .inputs = {"x"},
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef avg_pool = ir::define<spec>();

}  // namespace weft::ops

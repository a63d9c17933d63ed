#include "ops/shared/conv.h"

namespace weft::ir {
namespace {

// Limits attributes so that sums and products of sizes don't overflow.
constexpr int64_t kMost = int64_t{1} << 31;

Result<int64_t> number(const char* op, const char* what, const Shape& list, size_t i, int64_t otherwise,
                       int64_t least) {
  if (list.empty()) return otherwise;
  if (!list[i].is_const() || list[i].value() < least || list[i].value() > kMost)
    return invalid("{}: {} must be numbers in {}..{}, got {}", op, what, least, kMost, text(list));
  return list[i].value();
}

bool divides(int64_t groups, Dim channels) { return floor_div(channels, groups) * Dim(groups) == channels; }

}  // namespace

Result<Windows> windows(const char* op, std::span<const Dim> kernel, const Shape& stride,
                        const Shape& padding, const Shape& dilation) {
  const size_t n = kernel.size();
  const auto fits = [](const Shape& list, size_t wanted) { return list.empty() || list.size() == wanted; };
  if (!fits(stride, n) || !fits(dilation, n) || !fits(padding, 2 * n))
    return invalid(
        "{}: for {} spatial axes wants {} strides and dilations and {} paddings (before, after), "
        "got {}, {} and {}",
        op, n, n, 2 * n, text(stride), text(dilation), text(padding));
  Windows all;
  for (size_t i = 0; i < n; ++i) {
    Window w;
    w.kernel = kernel[i];
    if (w.kernel.min() < 1 || w.kernel.max() > kMost)
      return invalid("{}: a kernel must have 1 element or more along each axis, got {}", op, text(kernel));
    WEFT_TRY(w.stride, number(op, "strides", stride, i, 1, 1));
    WEFT_TRY(w.dilation, number(op, "dilations", dilation, i, 1, 1));
    WEFT_TRY(w.before, number(op, "paddings", padding, 2 * i, 0, 0));
    WEFT_TRY(w.after, number(op, "paddings", padding, 2 * i + 1, 0, 0));
    all.push_back(w);
  }
  return all;
}

Result<Shape> pooled_shape(const char* op, const Shape& x, const Windows& windows) {
  Shape y = x;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    Dim& size = y[y.size() - windows.size() + i];
    const Dim padded = size + (w.before + w.after);
    if (w.ceil ? w.count(size).min() < 1 : (padded - w.extent()).min() < 0)
      return invalid("{}: window {} spans {} elements, with padding there are {}", op, i, w.extent().text(),
                     padded.text());
    size = w.count(size);
  }
  return y;
}

Result<Windows> conv_windows(const char* op, const TensorType& a, const TensorType& b, const Shape& weight,
                             const ConvAttrs& attrs) {
  if (a.dtype != b.dtype || !is_float(a.dtype) || !is_compute(a.dtype))
    return invalid("{}: wants two operands of one float dtype, got {} and {}", op, text(a), text(b));
  if (a.rank() < 3 || a.rank() > 5 || a.rank() != b.rank() || a.shape.size() != weight.size())
    return invalid("{}: wants one to three spatial axes after two others in both operands, got {} and {}", op,
                   text(a), text(b));
  if (attrs.groups < 1 || !divides(attrs.groups, weight[0]))
    return invalid("{}: groups must divide the {} channels of the weight's first axis, got {}", op,
                   weight[0].text(), attrs.groups);
  return windows(op, std::span(weight).subspan(2), attrs.stride, attrs.padding, attrs.dilation);
}

Result<Shape> conv_shape(const char* op, const Shape& x, const Shape& weight, const Windows& windows,
                         int64_t groups) {
  if (!(x[1] == weight[1] * Dim(groups)))
    return invalid("{}: x has {} channels, {} groups of {} were wanted", op, x[1].text(), groups,
                   weight[1].text());
  WEFT_TRY(Shape y, pooled_shape(op, x, windows));
  y[1] = weight[0];
  return y;
}

Value conv(Builder& b, Value x, Value w, const ConvAttrs& a) {
  return b.one(
      "conv", {x, w},
      {{"stride", a.stride}, {"padding", a.padding}, {"dilation", a.dilation}, {"groups", a.groups}});
}

Value conv_transpose(Builder& b, Value dy, Value w, const ConvAttrs& a, const Shape& x) {
  const auto sliding =
      windows("conv_transpose", std::span(w.shape()).subspan(2), a.stride, a.padding, a.dilation);
  Shape rest;  // elements after the last window
  for (size_t i = 0; sliding.ok() && i < sliding.value().size(); ++i)
    rest.push_back(x[2 + i] - sliding.value()[i].least(dy.shape()[2 + i]));
  return b.one("conv_transpose", {dy, w},
               {{"stride", a.stride},
                {"padding", a.padding},
                {"dilation", a.dilation},
                {"groups", a.groups},
                {"output_padding", rest}});
}

Value conv_weight_grad(Builder& b, Value x, Value dy, const ConvAttrs& a, const Shape& w) {
  return b.one("conv_weight_grad", {x, dy},
               {{"kernel", Shape(w.begin() + 2, w.end())},
                {"stride", a.stride},
                {"padding", a.padding},
                {"dilation", a.dilation},
                {"groups", a.groups}});
}

}  // namespace weft::ir

#pragma once
#include "ir/builder.h"

// Shared by conv, conv_transpose and conv_weight_grad. With the sizes of x, w and y,
//
//   i = p * stride + k * dilation - before   along every spatial axis,
//
// all three are the sum over x[n, c, i...] w[o, c, k...] y[n, o, p...] with one factor left out, which is the
// result. So each is the gradient of the others, and these ops suffice for derivatives of any order.
namespace weft::ir {

/// Empty lists stand for stride 1, padding 0, dilation 1. `padding` is before, after for each spatial axis.
struct ConvAttrs {
  Shape stride, padding, dilation;
  int64_t groups = 1;
  static constexpr auto fields = ir::fields("stride", &ConvAttrs::stride, "padding", &ConvAttrs::padding,
                                            "dilation", &ConvAttrs::dilation, "groups", &ConvAttrs::groups);
};

/// A window along one axis.
struct Window {
  Dim kernel = 1;
  int64_t stride = 1, before = 0, after = 0, dilation = 1;
  bool ceil =
      false;  ///< a last one counts that ends outside, as long as it begins before the padding `after`

  Dim extent() const { return Dim(dilation) * (kernel - 1) + 1; }
  /// The number of windows in `size` elements.
  Dim count(Dim size) const {
    const Dim last = size + (before + after) - extent();  // the last possible start
    if (!ceil) return floor_div(last, stride) + 1;
    return min(floor_div(last + (stride - 1), stride), floor_div(size + (before - 1), stride)) + 1;
  }
  /// The number of elements beyond all padding that the last window covers.
  Dim beyond(Dim size) const { return max(least(count(size)) - size, 0); }
  /// The least number of elements with `count` windows.
  Dim least(Dim count) const { return (count - 1) * Dim(stride) + extent() - (before + after); }
};
using Windows = SmallVector<Window, 3>;

/// The windows over the last axes, one for each size of `kernel`. An error for lists of other lengths and
/// invalid numbers.
Result<Windows> windows(const char* op, std::span<const Dim> kernel, const Shape& stride,
                        const Shape& padding, const Shape& dilation);

/// The shape of x with each of the last axes replaced by its number of windows; an error if a window is
/// wider.
Result<Shape> pooled_shape(const char* op, const Shape& x, const Windows& windows);
/// The windows of a conv with weight w [o, c / groups, k...], after the checks common to all three ops: two
/// operands of one float dtype, one to three spatial axes, divisible groups.
Result<Windows> conv_windows(const char* op, const TensorType& a, const TensorType& b, const Shape& weight,
                             const ConvAttrs& attrs);

/// y [n, o, p...] for x [n, c, i...]; an error if a window is wider than its axis.
Result<Shape> conv_shape(const char* op, const Shape& x, const Shape& weight, const Windows& windows,
                         int64_t groups);

// The three ops, for gradients.
Value conv(Builder& b, Value x, Value w, const ConvAttrs& a);
/// The gradient for the x of a conv; `x` is its shape.
Value conv_transpose(Builder& b, Value dy, Value w, const ConvAttrs& a, const Shape& x);
/// The gradient for the w of a conv; `w` is its shape.
Value conv_weight_grad(Builder& b, Value x, Value dy, const ConvAttrs& a, const Shape& w);

}  // namespace weft::ir

#pragma once
#include "ir/builder.h"

// What conv, conv_transpose and conv_weight_grad share. With the sizes of x, w and y,
//
//   i = p * stride + k * dilation - before   along every spatial axis,
//
// all three are the sum over x[n, c, i...] w[o, c, k...] y[n, o, p...] with one of the factors left out, and
// that one is the result. So each is the gradient of the others, and no more ops are needed for any order.
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
  /// How often it fits into `size` elements.
  Dim count(Dim size) const {
    const Dim last = size + (before + after) - extent();  // where the last one may begin
    if (!ceil) return floor_div(last, stride) + 1;
    return min(floor_div(last + (stride - 1), stride), floor_div(size + (before - 1), stride)) + 1;
  }
  /// How many elements behind all padding the last one covers.
  Dim beyond(Dim size) const { return max(least(count(size)) - size, 0); }
  /// The least number of elements into which it fits `count` times.
  Dim least(Dim count) const { return (count - 1) * Dim(stride) + extent() - (before + after); }
};
using Windows = SmallVector<Window, 3>;

/// The windows over the last axes, one for each size of `kernel`. An error for lists of another length and
/// for numbers that make no sense.
Result<Windows> windows(const char* op, std::span<const Dim> kernel, const Shape& stride,
                        const Shape& padding, const Shape& dilation);

/// The shape of x with each of the last axes replaced by how often its window fits; an error where it is
/// wider.
Result<Shape> pooled_shape(const char* op, const Shape& x, const Windows& windows);
/// Those of a conv with weight w [o, c / groups, k...], after all that does not depend on which factor is
/// missing: two operands of one float dtype and one to three spatial axes, whole groups.
Result<Windows> conv_windows(const char* op, const TensorType& a, const TensorType& b, const Shape& weight,
                             const ConvAttrs& attrs);

/// y [n, o, p...] of x [n, c, i...]; an error where a window is wider than what it slides over.
Result<Shape> conv_shape(const char* op, const Shape& x, const Shape& weight, const Windows& windows,
                         int64_t groups);

// The three, as gradients call them.
Value conv(Builder& b, Value x, Value w, const ConvAttrs& a);
/// The gradient for the x of a conv; `x` is its shape.
Value conv_transpose(Builder& b, Value dy, Value w, const ConvAttrs& a, const Shape& x);
/// The gradient for the w of a conv; `w` is its shape.
Value conv_weight_grad(Builder& b, Value x, Value dy, const ConvAttrs& a, const Shape& w);

}  // namespace weft::ir

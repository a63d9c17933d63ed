#pragma once
#include "ops/shared/conv.h"

// Shared by pools: windows over the last axes whose stride is their size by default.
namespace weft::ir {

/// One window for each entry of `kernel`, `ceil_mode` as Window::ceil; an error if x has fewer axes, for
/// lists of other lengths and invalid numbers.
Result<Windows> pool_windows(const char* op, const TensorType& x, const Shape& kernel, const Shape& stride,
                             const Shape& padding, const Shape& dilation, bool ceil_mode);
/// A float x with each of its last axes replaced by the number of windows; an error if a window is wider.
Result<TensorType> infer_pool(const char* op, Types in, const Windows& windows);

/// [..., count..., elements]: the elements of each window, with `padding` around x.
Value window_elements(Builder& b, Value x, const Windows& windows, double padding);

}  // namespace weft::ir

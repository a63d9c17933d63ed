#pragma once
#include "ops/shared/conv.h"

// What pools share: windows over the last axes that slide by their own size unless a stride is given.
namespace weft::ir {

/// One window for each entry of `kernel`, `ceil_mode` as Window::ceil; an error where x has fewer axes, for
/// lists of another length and for numbers that make no sense.
Result<Windows> pool_windows(const char* op, const TensorType& x, const Shape& kernel, const Shape& stride,
                             const Shape& padding, const Shape& dilation, bool ceil_mode);
/// A float x with each of its last axes replaced by how often the window fits; an error where it is wider.
Result<TensorType> infer_pool(const char* op, Types in, const Windows& windows);

/// [..., count..., elements]: what each window sees, with `padding` around x.
Value window_elements(Builder& b, Value x, const Windows& windows, double padding);

}  // namespace weft::ir

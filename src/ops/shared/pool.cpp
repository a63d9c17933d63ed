#include "ops/shared/pool.h"

#include "ops/shared/rules.h"

namespace weft::ir {

Result<Windows> pool_windows(const char* op, const TensorType& x, const Shape& kernel, const Shape& stride,
                             const Shape& padding, const Shape& dilation, bool ceil_mode) {
  if (kernel.empty() || kernel.size() > x.shape.size())
    return invalid("{}: wants a kernel over some of the last axes of {}, got {}", op, text(x), text(kernel));
  WEFT_TRY(Windows all, windows(op, kernel, stride.empty() ? kernel : stride, padding, dilation));
  for (Window& w : all) {
    w.ceil = ceil_mode;
    if (ceil_mode && (w.extent() - w.after).min() < 1)
      return invalid(
          "{}: with ceil_mode, padding must be less than the {} elements that a window spans, got {}", op,
          w.extent().text(), w.after);
  }
  return all;
}

Result<TensorType> infer_pool(const char* op, Types in, const Windows& windows) {
  WEFT_TRY(TensorType y, infer_float_unary(op, in));
  WEFT_TRY(y.shape, pooled_shape(op, in[0].shape, windows));
  return y;
}

/// i32 [count, kernel]: the indices of each window's elements in the padded axis.
static Value window_places(Builder& b, const Window& window, Dim count) {
  const auto steps = [&](Dim n, int64_t step) {
    return b.mul(b.one("iota", {}, {{"size", Shape{n}}}), b.full(static_cast<double>(step), {}, DType::i32));
  };
  return b.add(b.reshape(steps(count, window.stride), {count, 1}), steps(window.kernel, window.dilation));
}

// [..., size] -> [..., count, kernel], axis by axis; then the windows' own axes become the last one.
Value window_elements(Builder& b, Value x, const Windows& windows, double padding) {
  const auto lead = static_cast<int64_t>(x.shape().size() - windows.size());
  Shape counts(x.shape().begin(), x.shape().begin() + lead), order;
  Dim elements = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto& w = windows[i];
    const int64_t axis = lead + 2 * static_cast<int64_t>(i);
    const Dim size = x.shape()[static_cast<size_t>(axis)];
    counts.push_back(w.count(size));
    elements = elements * w.kernel;
    x = b.one("pad", {x},
              {{"axis", axis},
               {"before", Shape{w.before}},
               {"after", Shape{w.beyond(size) + w.after}},
               {"value", padding}});
    x = b.gather(x, window_places(b, w, counts.back()), axis, 0);
  }
  for (int64_t d = 0; d < lead; ++d) order.push_back(d);
  for (const int64_t first : {int64_t{0}, int64_t{1}})
    for (size_t i = 0; i < windows.size(); ++i) order.push_back(lead + 2 * static_cast<int64_t>(i) + first);
  Shape flat = counts;
  flat.push_back(elements);
  return b.reshape(b.one("permute", {x}, {{"axes", order}}), flat);
}

}  // namespace weft::ir

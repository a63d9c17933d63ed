#include "weft/lists.h"

#include <algorithm>

#include "weft/ops.h"

namespace weft {

static constexpr size_t kTogether = 8;  // operands of one concat

// Eight at a time, until one is left: each element moves log8(n) times.
Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) throw Error(invalid("concat: wants at least one tensor, got none"));
  std::vector<Tensor> level(parts.begin(), parts.end());
  do {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < level.size(); at += kTogether) {
      Tensor p[kTogether];
      std::copy_n(level.begin() + static_cast<std::ptrdiff_t>(at), std::min(kTogether, level.size() - at), p);
      joined.push_back(concat(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], axis));
    }
    level = std::move(joined);
  } while (level.size() > 1);
  return level[0];
}
Tensor concat(std::initializer_list<Tensor> parts, int64_t axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t axis) {
  std::vector<Tensor> parts;
  Dim start = 0;
  for (const Dim size : sizes) {
    parts.push_back(slice(x, axis, start, start + size));
    start = start + size;
  }
  if (!(start == x.dim(axis)))
    throw Error(invalid("split: {} must add up to {}, the size of axis {} of {}", text(sizes),
                        x.dim(axis).text(), axis, text(x.type())));
  return parts;
}

Clipped clip_global_norm(std::span<const Tensor> tensors, double max_norm, double epsilon) {
  if (tensors.empty()) throw Error(invalid("clip_global_norm: wants at least one tensor, got none"));
  const bool wide = std::ranges::any_of(tensors, [](const Tensor& t) { return t.dtype() == DType::f64; });
  const DType sum_type = wide ? DType::f64 : DType::f32;
  Tensor squares;
  for (const Tensor& t : tensors) {
    const Tensor x = cast(t, sum_type), own = sum(mul(x, x));
    squares = squares ? add(squares, own) : own;
  }
  Clipped out{{}, sqrt(squares)};
  for (const Tensor& t : tensors) {
    const Tensor norm = cast(out.norm, t.dtype() == DType::f64 ? DType::f64 : DType::f32);
    out.tensors.push_back(global_norm_clip(t, norm, max_norm, epsilon));
  }
  return out;
}

}  // namespace weft

#include "weft/lists.h"

#include <algorithm>

#include "eager/apply.h"
#include "weft/ops.h"

namespace weft {

static Tensor concat_some(std::span<const Tensor> parts, int64_t axis) {
  static const ir::OpDef& op = *ir::find_op("concat");
  const Tensor* in[ir::kMostOperands];
  std::ranges::transform(parts, in, [](const Tensor& t) { return &t; });
  const AttrValue attrs[] = {axis};
  return eager::apply_one(op, std::span(in, parts.size()), attrs);
}

// As many at a time as the op takes, until one is left: up to 32 tensors are copied once, up to 1,024 twice.
Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  if (parts.empty()) throw Error(invalid("concat: wants at least one tensor, got none"));
  std::vector<Tensor> level(parts.begin(), parts.end());
  do {
    std::vector<Tensor> joined;
    for (size_t at = 0; at < level.size(); at += ir::kMostOperands)
      joined.push_back(
          concat_some(std::span(level).subspan(at, std::min(ir::kMostOperands, level.size() - at)), axis));
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

// A cast would copy what has the type already.
static Tensor as(const Tensor& t, DType type) { return t.dtype() == type ? t : cast(t, type); }

// One call that reads x once, where a device has a kernel for it, and what its result is to be multiplied by.
// The mean of nothing is not a number.
struct SumOfSquares {
  Tensor mean;
  double n;
};
static SumOfSquares sum_of_squares(const Tensor& x) {
  const Dim n = element_count(x.type().shape);
  if (!n.is_const() || n.value() == 0) return {sum(mul(x, x)), 1};
  return {mean_square(x), static_cast<double>(n.value())};
}

Tensor global_norm(std::span<const Tensor> tensors) {
  if (tensors.empty()) throw Error(invalid("global_norm: wants at least one tensor, got none"));
  const bool wide = std::ranges::any_of(tensors, [](const Tensor& t) { return t.dtype() == DType::f64; });
  const DType sum_type = wide ? DType::f64 : DType::f32;
  std::vector<SumOfSquares> sums;  // all of them first: a device may run calls of one kind as one
  for (const Tensor& t : tensors) sums.push_back(sum_of_squares(as(t, sum_type)));
  Tensor squares;
  for (const auto& [mean, n] : sums) {
    const Tensor own = n == 1 ? mean : mul(mean, Tensor::scalar(n, sum_type));
    squares = squares ? add(squares, own) : own;
  }
  return sqrt(squares);
}

Tensor clip_by_norm(const Tensor& x, const Tensor& norm, double max_norm, double epsilon) {
  return global_norm_clip(x, as(norm, x.dtype() == DType::f64 ? DType::f64 : DType::f32), max_norm, epsilon);
}

Clipped clip_global_norm(std::span<const Tensor> tensors, double max_norm, double epsilon) {
  Clipped out{{}, global_norm(tensors)};
  for (const Tensor& t : tensors) out.tensors.push_back(clip_by_norm(t, out.norm, max_norm, epsilon));
  return out;
}

}  // namespace weft

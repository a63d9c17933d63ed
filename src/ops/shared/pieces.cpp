#include "ops/shared/pieces.h"

#include <limits>

namespace weft::ir {

bool is_folded(const ReduceAttrs& a, int64_t rank, size_t d) {
  for (const Dim axis : a.axes)
    if (axis == Dim(d) || axis == Dim(d) - Dim(rank)) return true;
  return a.axes.empty();
}

Dim folded_count(const Shape& x, const ReduceAttrs& a) {
  Dim n = 1;
  for (size_t d = 0; d < x.size(); ++d)
    if (is_folded(a, static_cast<int64_t>(x.size()), d)) n = n * x[d];
  return n;
}

Value fold(Builder& b, const char* op, Value x, const Shape& axes) {
  return b.one(op, {x}, {{"axes", axes}, {"keep", int64_t{1}}});
}

Value mean_over(Builder& b, Value x, const Shape& axes) {
  const Dim n = folded_count(x.shape(), {axes, true});
  return b.div(fold(b, "sum", x, axes), b.full(1, {}, x.dtype(), n));
}

Value finite_or_zero(Builder& b, Value x) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return b.where(b.less(x, inf), b.where(b.less(-inf, x), x, 0), 0);
}

Result<int64_t> resolve_counted_axis(const char* op, int64_t axis, const TensorType& x) {
  WEFT_TRY(const int64_t at, resolve_axis(op, axis, x.rank()));
  if (x.shape[static_cast<size_t>(at)].min() > std::numeric_limits<int32_t>::max())
    return invalid("{}: positions are i32, which do not count axis {} of {}", op, at, text(x));
  return at;
}

Result<TensorType> infer_arg(const char* op, Types in, const ArgAttrs& a) {
  const auto& x = in[0];
  if (!is_compute(x.dtype) || x.dtype == DType::boolean)
    return invalid("{}: wants a number type, got {}", op, text(x));
  WEFT_TRY(const int64_t axis, resolve_counted_axis(op, a.axis, x));
  const auto at = static_cast<size_t>(axis);
  if (x.shape[at].min() < 1) return invalid("{}: axis {} of {} may be empty", op, axis, text(x));
  TensorType y{DType::i32, x.shape};
  if (a.keep)
    y.shape[at] = 1;
  else
    y.shape.erase(at);
  return y;
}

Value first_position(Builder& b, Value x, Value best, const ArgAttrs& a) {
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + x.rank() : a.axis);
  const Dim n = x.shape()[axis];
  auto hit = b.equal(x, best);
  if (is_float(x.dtype())) {  // if the best is NaN, which equals nothing, find it
    const auto nan = b.equal(b.equal(x, x), b.full(0, {}, DType::boolean));
    hit = b.where(b.equal(best, best), hit, nan);
  }
  Shape along(x.shape().size() - axis, Dim(1));
  along[0] = n;
  const auto place = b.reshape(b.one("iota", {}, {{"size", Shape{n}}}), along);
  const auto places = b.where(hit, place, b.full(1, {}, DType::i32, n));
  return b.one("min", {places}, {{"axes", Shape{a.axis}}, {"keep", int64_t{a.keep}}});
}

Value give_back(Builder& b, const TensorType& x, Value indices, Value dy, int64_t axis) {
  const int64_t last = x.rank() - 1;
  if (axis < 0) axis += x.rank();
  const auto swapped = [&](Value v) {  // makes all other axes the batch
    return axis == last ? v : b.one("transpose", {v}, {{"axis_a", axis}, {"axis_b", last}});
  };
  Shape shape = x.shape;
  std::swap(shape[static_cast<size_t>(axis)], shape[static_cast<size_t>(last)]);
  return swapped(b.scatter_add(b.full(0, shape, x.dtype), swapped(indices), swapped(dy), last, last));
}

Shape last_axes(const LayerNormAttrs& a) {
  Shape axes;
  for (int64_t d = -a.trailing; d < 0; ++d) axes.push_back(d);
  return axes;
}

Normalized normalize(Builder& b, Value x, const Shape& axes, double epsilon) {
  const auto centered = b.sub(x, mean_over(b, x, axes));
  const auto variance = mean_over(b, b.mul(centered, centered), axes);
  const auto scale = b.div(1, b.sqrt(b.add(variance, epsilon)));
  return {b.mul(centered, scale), scale};
}

Value normalize_grad(Builder& b, const Normalized& n, Value g, const Shape& axes) {
  const auto along_h = b.mul(n.h, mean_over(b, b.mul(g, n.h), axes));
  return b.mul(n.scale, b.sub(b.sub(g, mean_over(b, g, axes)), along_h));
}

Value affine(Builder& b, Value h, Value weight, Value bias, const Shape& shape) {
  if (weight) h = b.mul(h, b.reshape(weight, shape));
  return bias ? b.add(h, b.reshape(bias, shape)) : h;
}

Result<TensorType> infer_channels(const char* op, Types in, std::initializer_list<const char*> names) {
  const auto& x = in[0];
  if (x.rank() < 2) return invalid("{}: wants x [n, channels, ...], got {}", op, text(x));
  const TensorType channels{x.dtype, {x.shape[1]}};
  size_t i = 0;
  for (const char* name : names) {
    if (i > 0 && in.has(i) && !(in[i] == channels))
      return invalid("{}: {} must be {}, got {}", op, name, text(channels), text(in[i]));
    ++i;
  }
  return infer_float_unary(op, in);
}

Shape channel_shape(const Shape& x) {
  Shape shape(x.size() - 1, Dim(1));
  shape[0] = x[1];
  return shape;
}

Result<std::vector<TensorType>> infer_random(const char* op, Types in, const Shape& shape, DType dtype) {
  if (in[0].dtype != DType::u64 || !(in[0].shape == Shape{2}))
    return invalid("{}: state must be u64[2] (key, counter), got {}", op, text(in[0]));
  if (!is_float(dtype) || !is_compute(dtype))
    return invalid("{}: wants f64, f32, f16 or bf16, got {}", op, name(dtype));
  for (const Dim d : shape)
    if (d.min() < 0) return invalid("{}: a dimension must not be negative, got {}", op, text(shape));
  return std::vector<TensorType>{{dtype, shape}, in[0]};
}

Drawn unit_uniform(Builder& b, Value state, const Shape& shape, DType dtype) {
  const auto top = [&](Value words, double below) {  // a word without its lowest bits
    return b.div(words, b.full(below, {}, DType::u32));
  };
  if (dtype != DType::f64) {
    const auto drawn = b.call("random_bits", std::array{state}, {{"shape", shape}});
    return {b.mul(b.cast(top(drawn[0], 0x1p8), DType::f32), 0x1p-24), drawn[1]};
  }
  Shape pairs = shape;  // two words each: 26 bits and 27
  pairs.push_back(2);
  const auto drawn = b.call("random_bits", std::array{state}, {{"shape", pairs}});
  const auto word = [&](int64_t i, double below) {
    const auto one =
        b.one("slice", {drawn[0]}, {{"axis", int64_t{-1}}, {"start", Shape{i}}, {"stop", Shape{i + 1}}});
    return b.cast(top(b.reshape(one, shape), below), DType::f64);
  };
  const auto whole = b.add(b.mul(word(0, 0x1p6), 0x1p27), word(1, 0x1p5));
  return {b.mul(whole, 0x1p-53), drawn[1]};
}

}  // namespace weft::ir

#pragma once
#include "ops/shared/rules.h"

// Parts of decompositions and gradients shared by several ops.
namespace weft::ir {

// ---- folds

/// Is axis `d` of a tensor of this rank folded?
bool is_folded(const ReduceAttrs& a, int64_t rank, size_t d);
/// The number of elements folded into each result.
Dim folded_count(const Shape& x, const ReduceAttrs& a);
/// A fold (sum, max, ...) that keeps the axes with size 1.
Value fold(Builder& b, const char* op, Value x, const Shape& axes);
/// Mean over `axes`, kept with size 1.
Value mean_over(Builder& b, Value x, const Shape& axes);
/// `x`, with infinities and NaN replaced by 0.
Value finite_or_zero(Builder& b, Value x);

// ---- positions along an axis

/// The axis, counted from 0, of an op that returns positions along it as i32; an error if its length does not
/// fit. A symbol counts by its least size.
Result<int64_t> resolve_counted_axis(const char* op, int64_t axis, const TensorType& x);

struct ArgAttrs {
  int64_t axis = -1;
  bool keep = false;
  static constexpr auto fields = ir::fields("axis", &ArgAttrs::axis, "keep", &ArgAttrs::keep);
};
Result<TensorType> infer_arg(const char* op, Types in, const ArgAttrs& a);
/// The index along the axis of the first element equal to `best`, a fold of x with keep = true.
Value first_position(Builder& b, Value x, Value best, const ArgAttrs& a);
/// The gradient of picking along `axis` with indices of dy's shape: adds each at its source.
Value give_back(Builder& b, const TensorType& x, Value indices, Value dy, int64_t axis);

// ---- normalization

struct LayerNormAttrs {
  int64_t trailing = 1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      ir::fields("trailing", &LayerNormAttrs::trailing, "epsilon", &LayerNormAttrs::epsilon);
};
/// The axes that are normalized together.
Shape last_axes(const LayerNormAttrs& a);

/// h = (x - mean) * scale over `axes`, with scale = 1 / sqrt(variance + epsilon).
struct Normalized {
  Value h, scale;
};
Normalized normalize(Builder& b, Value x, const Shape& axes, double epsilon);
/// The gradient of x from g, that of h: scale (g - mean(g) - h mean(g h)).
Value normalize_grad(Builder& b, const Normalized& n, Value g, const Shape& axes);
/// h weight + bias, each reshaped to `shape`; absent ones are left out.
Value affine(Builder& b, Value h, Value weight, Value bias, const Shape& shape);

/// The rule of norms over channels: x [n, channels, ...] float, and `names` [1..] of x's dtype and shape
/// [channels], the last of which may be absent. Gives the type of x.
Result<TensorType> infer_channels(const char* op, Types in, std::initializer_list<const char*> names);
/// One number per channel, shaped to broadcast over x.
Shape channel_shape(const Shape& x);

// ---- random numbers

/// y of `shape` and dtype, and the state.
Result<std::vector<TensorType>> infer_random(const char* op, Types in, const Shape& shape, DType dtype);
/// Numbers in [0, 1), each a multiple of 2^-53 in f64 or 2^-24 in f32, which the halves compute in.
struct Drawn {
  Value y, next;
};
Drawn unit_uniform(Builder& b, Value state, const Shape& shape, DType dtype);

}  // namespace weft::ir

#pragma once
#include "ir/builder.h"

// Shape rules shared by several ops.
namespace weft::ir {

/// NumPy's broadcasting of two shapes. A symbolic dimension broadcasts only with itself or 1.
Result<Shape> broadcast_shapes(const char* op, const Shape& a, const Shape& b);

/// Two operands of one dtype, broadcast together.
Result<TensorType> infer_binary(const char* op, Types in);
/// The same for numbers: not for bool.
Result<TensorType> infer_arithmetic(const char* op, Types in);
/// Two operands of any compute dtype; the result is bool.
Result<TensorType> infer_comparison(const char* op, Types in);
/// One operand or two of bool.
Result<TensorType> infer_logic(const char* op, Types in);
/// Two operands with bits: integers, and bool.
Result<TensorType> infer_bits(const char* op, Types in);
/// Two integers.
Result<TensorType> infer_shift(const char* op, Types in);
/// The operand's own type; it must be a float.
Result<TensorType> infer_float_unary(const char* op, Types in);
/// The same for every number type.
Result<TensorType> infer_unary(const char* op, Types in);
/// bool, for a predicate of a float.
Result<TensorType> infer_float_question(const char* op, Types in);

/// Gradients of maximum and minimum: `loses` is true where operand 0 is not chosen. Equal operands share dy
/// evenly, and both get all of it if either is NaN, as in PyTorch.
Grads shared_by_ties(Builder& b, const GradContext& ctx, Value loses, Value wins);

/// Removes `axes` (empty: all), or with `keep` sets them to 1.
struct ReduceAttrs {
  Shape axes;
  bool keep = false;
  static constexpr auto fields = ir::fields("axes", &ReduceAttrs::axes, "keep", &ReduceAttrs::keep);
};
Result<TensorType> infer_reduce(const char* op, Types in, const ReduceAttrs& a);
/// The shape that a fold of `x` has with keep = true: what broadcasts back over x.
Shape kept_shape(const Shape& x, const ReduceAttrs& a);

/// gather's result: x[:axis] + index[batch:] + x[axis+1:], after checking axes, batch and the index's dtype.
struct IndexAttrs {
  int64_t axis = 0;
  int64_t batch = 0;
  static constexpr auto fields = ir::fields("axis", &IndexAttrs::axis, "batch", &IndexAttrs::batch);
};
Result<Shape> gathered_shape(const char* op, const TensorType& x, const TensorType& index,
                             const IndexAttrs& a);

}  // namespace weft::ir

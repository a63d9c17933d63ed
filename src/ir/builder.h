#pragma once
#include "ir/op.h"

namespace weft::ir {

/// Makes values out of ops. A graph records them; the eager builder runs them at once. Op files see only
/// this.
///
/// The first failure (a shape rule that refuses, a kernel that is missing) is kept: later calls return values
/// of a plausible type and do nothing, and the owner of the builder checks `status()` at the end. So op files
/// stay free of error handling.
class Builder {
 public:
  virtual ~Builder() = default;

  /// Calls an op. `attrs` in the order of its fields; empty = the defaults.
  ValueList call(const OpDef& op, Values inputs, std::vector<AttrValue> attrs = {});
  /// Calls an op that the file at hand does not know at compile time, with named attributes.
  ValueList call(std::string_view op, Values inputs, std::initializer_list<Attr> attrs = {});
  Value one(std::string_view op, std::initializer_list<Value> inputs,
            std::initializer_list<Attr> attrs = {}) {
    return call(op, Values(inputs.begin(), inputs.size()), attrs)[0];
  }
  virtual const TensorType& type(Value v) const = 0;

  const Status& status() const { return status_; }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  /// Gives the failure to the owner, who goes on: to find others, and throw the result away.
  Status take_status() { return std::exchange(status_, Status()); }

  // The vocabulary that decompositions and gradients are written in. Binary ops broadcast as NumPy does and
  // take their dtype from the operands, which must agree; a plain number takes the dtype of the other
  // operand.
  struct Operand {
    Value value;
    double number = 0;
    Operand(Value v) : value(v) {}    // NOLINT: implicit on purpose
    Operand(double v) : number(v) {}  // NOLINT: implicit on purpose
    Operand(int v) : number(v) {}     // NOLINT: implicit on purpose
  };
  Value add(Operand a, Operand b) { return binary("add", a, b); }
  Value sub(Operand a, Operand b) { return binary("sub", a, b); }
  Value mul(Operand a, Operand b) { return binary("mul", a, b); }
  Value div(Operand a, Operand b) { return binary("div", a, b); }
  Value mod(Operand a, Operand b) { return binary("mod", a, b); }
  Value power(Operand a, Operand b) { return binary("power", a, b); }
  Value maximum(Operand a, Operand b) { return binary("maximum", a, b); }
  Value minimum(Operand a, Operand b) { return binary("minimum", a, b); }
  Value less(Operand a, Operand b) { return binary("less", a, b); }
  Value equal(Operand a, Operand b) { return binary("equal", a, b); }
  Value bit_and(Operand a, Operand b) { return binary("bit_and", a, b); }
  Value bit_or(Operand a, Operand b) { return binary("bit_or", a, b); }
  Value bit_xor(Operand a, Operand b) { return binary("bit_xor", a, b); }
  Value exp(Value x) { return one("exp", {x}); }
  Value log(Value x) { return one("log", {x}); }
  Value log1p(Value x) { return one("log1p", {x}); }
  Value sqrt(Value x) { return one("sqrt", {x}); }
  Value sin(Value x) { return one("sin", {x}); }
  Value cos(Value x) { return one("cos", {x}); }
  Value tanh(Value x) { return one("tanh", {x}); }
  Value erf(Value x) { return one("erf", {x}); }
  Value floor(Value x) { return one("floor", {x}); }
  Value round(Value x) { return one("round", {x}); }
  Value abs(Value x) { return one("abs", {x}); }
  Value sigmoid(Value x) { return one("sigmoid", {x}); }
  Value neg(Value x);
  Value cast(Value x, DType dtype);
  Value where(Value condition, Operand yes, Operand no);
  /// Folds one axis and keeps it with size 1, as decompositions want it for broadcasting back.
  Value max(Value x, int64_t axis) { return one("max", {x}, {{"axes", Shape{axis}}, {"keep", int64_t{1}}}); }
  Value sum(Value x, int64_t axis) { return one("sum", {x}, {{"axes", Shape{axis}}, {"keep", int64_t{1}}}); }
  Value sum_all(Value x);
  /// Sums the axes along which `x` was broadcast from `shape`, so that the result has that shape.
  Value sum_to(Value x, const Shape& shape);
  Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);
  Value broadcast(Value x, const Shape& shape);
  Value reshape(Value x, const Shape& shape);
  Value gather(Value x, Value index, int64_t axis, int64_t batch);
  Value scatter_add(Value x, Value index, Value updates, int64_t axis, int64_t batch);
  /// value * times, in every element; `times` may be a symbolic dimension.
  Value full(double value, const Shape& shape, DType dtype, Dim times = 1);
  Value zeros_like(Value x) { return full(0, x.shape(), x.dtype()); }

 protected:
  /// Types are inferred and right; `attrs` are complete. Returns one value per output.
  virtual ValueList emit(const OpDef& op, Values inputs, std::vector<AttrValue> attrs,
                         std::vector<TensorType> types) = 0;
  /// A value that stands for a failed call.
  virtual Value placeholder(const TensorType& type) = 0;

 private:
  Value binary(const char* op, Operand a, Operand b);
  Status status_;
};

inline const TensorType& Value::type() const { return builder_->type(*this); }

/// The decomposition of a composite op on `b`: f16 and bf16 operands enter as f32 and results are rounded
/// once, at the end.
ValueList expand(Builder& b, const OpDef& op, Values inputs, AttrView attrs);

/// The gradients that the rule of an op gives, on `b`. f16 and bf16 enter the rule as f32, and each gradient
/// is rounded once, at the end. A call that would round only its results, and those only to gradients, keeps
/// its half operands: so linear, conv, attention and all that moves keep their half kernels.
Grads differentiate(Builder& b, const OpDef& op, const GradContext& ctx, AttrView attrs);

/// Attributes by name -> in the order of the op's fields; what is not given takes its default.
Result<std::vector<AttrValue>> order_attrs(const OpDef& op, std::span<const Attr> named);

}  // namespace weft::ir

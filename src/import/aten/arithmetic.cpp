#include <array>
#include <cmath>

#include "import/call.h"

// Ops of two or three tensors that broadcast, one of which may be a number.
namespace weft::importer {
namespace {

/// `f` of operands in the dtype that they promote to. A number that a half can't hold counts as f32, as in
/// PyTorch.
template <class F>
void promoted_call(Call& c, std::initializer_list<Operand> operands, F f) {
  const auto type = result_type({operands.begin(), operands.size()});
  bool wide = false;
  for (const Operand& o : operands) wide |= type && is_half(*type) && o.number && !is_exact(*o.number, *type);
  ir::ValueList all = c.promoted({operands.begin(), operands.size()});
  if (!c.status().ok()) return;
  if (wide) {
    size_t i = 0;
    for (const Operand& o : operands) all[i++] = c.as(o, DType::f32);
  }
  const ir::Value y = f(all);
  c.give(wide && is_float(y.dtype()) ? c.b.cast(y, *type) : y);
}
void both(Call& c, const char* op) {
  promoted_call(c, {c.required("self"), c.required("other")},
                [&](const ir::ValueList& v) { return c.b.one(op, {v[0], v[1]}); });
}
void binary(Call& c) { both(c, c.op.how); }

// Sums of bool are or, products and.
ir::Value sum(Call& c, ir::Value a, ir::Value b) {
  return a.dtype() == DType::boolean ? c.b.bit_or(a, b) : c.b.add(a, b);
}
ir::Value times(Call& c, ir::Value x, const Number& factor) {
  if (factor.value == 1) return x;
  if (x.dtype() == DType::boolean && factor.value == 0) return c.b.bit_and(x, c.b.full(0, {}, x.dtype()));
  return c.b.mul(x, c.constant(factor, x.dtype()));
}
void add(Call& c) {
  promoted_call(c, {c.required("self"), c.required("other")},
                [&](const ir::ValueList& v) { return sum(c, v[0], times(c, v[1], c.number("alpha"))); });
}
void sub(Call& c) {
  promoted_call(c, {c.required("self"), c.required("other")},
                [&](const ir::ValueList& v) { return c.b.sub(v[0], times(c, v[1], c.number("alpha"))); });
}
void rsub(Call& c) {
  promoted_call(c, {c.required("self"), c.required("other")},
                [&](const ir::ValueList& v) { return c.b.sub(v[1], times(c, v[0], c.number("alpha"))); });
}
void mul(Call& c) {
  promoted_call(c, {c.required("self"), c.required("other")}, [&](const ir::ValueList& v) {
    return v[0].dtype() == DType::boolean ? c.b.bit_and(v[0], v[1]) : c.b.mul(v[0], v[1]);
  });
}

// ---- division
// Of whole numbers alone, in f32.
void true_division(Call& c, const Operand& a, const Operand& b) {
  const auto type = result_type(std::array{a, b});
  if (type && !is_float(*type)) return c.give(c.b.div(c.as(a, DType::f32), c.as(b, DType::f32)));
  promoted_call(c, {a, b}, [&](const ir::ValueList& v) { return c.b.div(v[0], v[1]); });
}
// Integers divide toward zero, which is one too high where there is a rest and the signs differ. Nothing here
// leaves the range, as x - (x mod y) does next to its ends.
ir::Value whole_floor_quotient(ir::Builder& b, ir::Value x, ir::Value y) {
  const auto toward_zero = b.div(x, y), rest = b.mod(x, y);
  const auto turned = b.one("logical_xor", {b.less(x, 0), b.less(y, 0)});
  const auto high = b.one("logical_and", {b.one("not_equal", {rest, b.full(0, {}, rest.dtype())}), turned});
  return b.sub(toward_zero, b.cast(high, x.dtype()));
}
// x - (x mod y) is a multiple of y, and mod has the sign of y.
ir::Value floor_quotient(ir::Builder& b, ir::Value x, ir::Value y) {
  if (!is_float(x.dtype())) return whole_floor_quotient(b, x, y);
  const auto whole = b.div(b.sub(x, b.mod(x, y)), y);
  return b.where(b.equal(y, 0), b.div(x, y), b.round(whole));
}
// PyTorch raises an error, which a program can't.
bool is_refused(Call& c, const Operand& a, const Operand& b) {
  const auto type = result_type(std::array{a, b});
  if (!b.number || b.number->value != 0 || !type || is_float(*type)) return false;
  c.refuse(invalid("a whole number is divided by zero"));
  return true;
}
void floor_division(Call& c, const Operand& a, const Operand& b) {
  if (is_refused(c, a, b)) return;
  promoted_call(c, {a, b}, [&](const ir::ValueList& v) { return floor_quotient(c.b, v[0], v[1]); });
}
void div(Call& c) { true_division(c, c.required("self"), c.required("other")); }
void div_mode(Call& c) {
  const Operand a = c.required("self"), b = c.required("other");
  if (!c.has("rounding_mode")) return true_division(c, a, b);
  const std::string mode = c.text("rounding_mode");
  if (mode == "floor") return floor_division(c, a, b);
  if (mode != "trunc") return c.refuse(invalid("argument 'rounding_mode': there is no '{}'", mode));
  if (is_refused(c, a, b)) return;
  promoted_call(c, {a, b}, [&](const ir::ValueList& v) {
    const auto y = c.b.div(v[0], v[1]);
    return is_float(y.dtype()) ? c.b.one("trunc", {y}) : y;
  });
}
void floor_divide(Call& c) { floor_division(c, c.required("self"), c.required("other")); }
// The remainder with the sign of `self`.
void fmod(Call& c) {
  const Operand x = c.required("self"), y = c.required("other");
  if (is_refused(c, x, y)) return;
  promoted_call(c, {x, y}, [&](const ir::ValueList& v) {
    // Of the least integer there is no abs().
    if (!is_float(v[0].dtype())) return c.b.sub(v[0], c.b.mul(c.b.div(v[0], v[1]), v[1]));
    const auto rest = c.b.mod(c.b.abs(v[0]), c.b.abs(v[1]));
    return c.b.where(c.b.less(v[0], 0), c.b.neg(rest), rest);
  });
}

// The remainder with the sign of `other`.
void remainder(Call& c) {
  if (!is_refused(c, c.required("self"), c.required("other"))) both(c, "mod");
}

// ---- powers
// By squaring, as integers have no `power`.
ir::Value whole_power(ir::Builder& b, ir::Value x, int64_t n) {
  ir::Value y;
  for (ir::Value square = x; n > 0; n >>= 1) {
    if (n & 1) y = y ? b.mul(y, square) : square;
    if (n > 1) square = b.mul(square, square);
  }
  return y ? y : b.full(1, x.shape(), x.dtype());
}
// The exponents that have an op of their own, as in PyTorch.
ir::Value power_of(Call& c, ir::Value x, double n) {
  if (n == 2) return c.b.one("square", {x});
  if (n == 3) return c.b.mul(c.b.mul(x, x), x);
  if (n == 1) return x;
  if (n == 0.5) return c.b.sqrt(x);
  if (n == -0.5) return c.b.one("rsqrt", {x});
  if (n == -1) return c.b.one("reciprocal", {x});
  if (n == -2) return c.b.one("reciprocal", {c.b.one("square", {x})});
  return c.b.power(x, c.constant(n, x.dtype()));
}
void pow_scalar(Call& c) {
  const auto x = c.tensor("self");
  const Number n = c.number("exponent");
  const auto type = result_type(std::array{Operand{x, {}}, Operand{{}, n}});
  if (is_float(type.value_or(DType::f32))) return c.give(power_of(c, c.b.cast(x, *type), n.value));
  if (n.whole < 0 || n.whole > 64) return c.refuse(invalid("an integer to the power of {}", n.whole));
  c.give(whole_power(c.b, c.b.cast(x, *type), n.whole));
}
void pow_tensor(Call& c) {
  promoted_call(c, {c.required("self"), c.required("exponent")},
                [&](const ir::ValueList& v) { return c.b.power(v[0], v[1]); });
}

// ---- comparisons, logic
// i8 and u8 are for storage only.
Operand widened(Call& c, const Operand& o) {
  const bool narrow = o.value && (o.value.dtype() == DType::i8 || o.value.dtype() == DType::u8);
  return narrow ? Operand{c.b.cast(o.value, DType::i32), {}} : o;
}
void compare(Call& c) {
  promoted_call(c, {widened(c, c.required("self")), widened(c, c.required("other"))},
                [&](const ir::ValueList& v) { return c.b.one(c.op.how, {v[0], v[1]}); });
}
void logic(Call& c) {
  const auto a = c.as(c.required("self"), DType::boolean), b = c.as(c.required("other"), DType::boolean);
  c.give(c.b.one(c.op.how, {a, b}));
}

void where(Call& c) {
  const auto condition = c.b.cast(c.tensor("condition"), DType::boolean);
  const auto v = c.promoted(std::array{c.required("self"), c.required("other")});
  if (c.status().ok()) c.give(c.b.where(condition, v[0], v[1]));
}
void masked_fill(Call& c) {
  const auto x = c.tensor("self");
  const auto mask = c.b.cast(c.tensor("mask"), DType::boolean);
  const auto value = c.as(c.required("value"), x.dtype());
  c.give(c.b.where(mask, value, x));
}

// `min` and `max` may be missing; a bound of a higher kind makes the result one.
void clamp(Call& c) {
  const Operand x = c.required("self"), least = c.operand("min"), most = c.operand("max");
  promoted_call(c, {x, least, most}, [&](const ir::ValueList& v) {
    auto y = v[0];
    if (v[1]) y = c.b.maximum(y, v[1]);
    if (v[2]) y = c.b.minimum(y, v[2]);
    return y;
  });
}
void clamp_numbers(Call& c) {
  const auto x = c.tensor("self");
  if (!is_float(x.dtype())) return clamp(c);
  const double least = c.has("min") ? c.real("min") : -INFINITY,
               most = c.has("max") ? c.real("max") : INFINITY;
  c.give(c.b.one("clamp", {x}, {{"min", least}, {"max", most}}));
}
void clamp_tensors(Call& c) {
  if (c.has("min") != c.has("max") && c.node.inputs.size() == 2 && c.node.inputs[0].arg.empty())
    return c.refuse(invalid("the file does not say whether its one bound is `min` or `max`"));
  clamp(c);
}

// ---- of three
void lerp(Call& c) {
  promoted_call(c, {c.required("self"), c.required("end"), c.required("weight")},
                [&](const ir::ValueList& v) { return c.b.add(v[0], c.b.mul(v[2], c.b.sub(v[1], v[0]))); });
}
void addcmul(Call& c) {
  promoted_call(c, {c.required("self"), c.required("tensor1"), c.required("tensor2")},
                [&](const ir::ValueList& v) {
                  return c.b.add(v[0], times(c, c.b.mul(v[1], v[2]), c.number("value")));
                });
}
void addcdiv(Call& c) {
  promoted_call(c, {c.required("self"), c.required("tensor1"), c.required("tensor2")},
                [&](const ir::ValueList& v) {
                  return c.b.add(v[0], times(c, c.b.div(v[1], v[2]), c.number("value")));
                });
}

constexpr AtenOp arithmetic_ops[] = {
    {"add.Tensor", "self, other, alpha=1", "add", add},
    {"add.Scalar", "self, other, alpha=1", "add", add},
    {"addcdiv.default", "self, tensor1, tensor2, value=1", "div, add", addcdiv},
    {"addcmul.default", "self, tensor1, tensor2, value=1", "mul, add", addcmul},
    {"bitwise_and.Tensor", "self, other", "bit_and", binary},
    {"bitwise_and.Scalar", "self, other", "bit_and", binary},
    {"bitwise_or.Tensor", "self, other", "bit_or", binary},
    {"bitwise_or.Scalar", "self, other", "bit_or", binary},
    {"bitwise_xor.Tensor", "self, other", "bit_xor", binary},
    {"bitwise_xor.Scalar", "self, other", "bit_xor", binary},
    {"__and__.Tensor", "self, other", "bit_and", binary},
    {"__and__.Scalar", "self, other", "bit_and", binary},
    {"__or__.Tensor", "self, other", "bit_or", binary},
    {"__or__.Scalar", "self, other", "bit_or", binary},
    {"__xor__.Tensor", "self, other", "bit_xor", binary},
    {"__xor__.Scalar", "self, other", "bit_xor", binary},
    {"clamp.default", "self, min=None, max=None", "clamp", clamp_numbers},
    {"clamp.Tensor", "self, min?, max?", "maximum, minimum", clamp_tensors},
    {"clamp_min.default", "self, min=", "maximum", clamp},
    {"clamp_min.Tensor", "self, min", "maximum", clamp},
    {"clamp_max.default", "self, max=", "minimum", clamp},
    {"clamp_max.Tensor", "self, max", "minimum", clamp},
    {"div.Tensor", "self, other", "div", div},
    {"div.Scalar", "self, other", "div", div},
    {"div.Tensor_mode", "self, other, rounding_mode=None", "div, mod, trunc", div_mode},
    {"div.Scalar_mode", "self, other, rounding_mode=None", "div, mod, trunc", div_mode},
    {"eq.Tensor", "self, other", "equal", compare},
    {"eq.Scalar", "self, other", "equal", compare},
    {"floor_divide.default", "self, other", "mod, div", floor_divide},
    {"floor_divide.Scalar", "self, other", "mod, div", floor_divide},
    {"fmod.Tensor", "self, other", "mod, div", fmod},
    {"fmod.Scalar", "self, other", "mod, div", fmod},
    {"ge.Tensor", "self, other", "greater_equal", compare},
    {"ge.Scalar", "self, other", "greater_equal", compare},
    {"gt.Tensor", "self, other", "greater", compare},
    {"gt.Scalar", "self, other", "greater", compare},
    {"le.Tensor", "self, other", "less_equal", compare},
    {"le.Scalar", "self, other", "less_equal", compare},
    {"lerp.Scalar", "self, end, weight", "sub, mul, add", lerp},
    {"lerp.Tensor", "self, end, weight", "sub, mul, add", lerp},
    {"logical_and.default", "self, other", "logical_and", logic},
    {"logical_or.default", "self, other", "logical_or", logic},
    {"logical_xor.default", "self, other", "logical_xor", logic},
    {"lt.Tensor", "self, other", "less", compare},
    {"lt.Scalar", "self, other", "less", compare},
    {"masked_fill.Scalar", "self, mask, value", "where", masked_fill},
    {"masked_fill.Tensor", "self, mask, value", "where", masked_fill},
    {"max.other", "self, other", "maximum", binary},
    {"maximum.default", "self, other", "maximum", binary},
    {"min.other", "self, other", "minimum", binary},
    {"minimum.default", "self, other", "minimum", binary},
    {"mul.Tensor", "self, other", "mul", mul},
    {"mul.Scalar", "self, other", "mul", mul},
    {"ne.Tensor", "self, other", "not_equal", compare},
    {"ne.Scalar", "self, other", "not_equal", compare},
    {"pow.Tensor_Scalar", "self, exponent=", "square, sqrt, power", pow_scalar},
    {"pow.Tensor_Tensor", "self, exponent", "power", pow_tensor},
    {"pow.Scalar", "self, exponent", "power", pow_tensor},
    {"remainder.Tensor", "self, other", "mod", remainder},
    {"remainder.Scalar", "self, other", "mod", remainder},
    {"rsub.Tensor", "self, other, alpha=1", "sub", rsub},
    {"rsub.Scalar", "self, other, alpha=1", "sub", rsub},
    {"sub.Tensor", "self, other, alpha=1", "sub", sub},
    {"sub.Scalar", "self, other, alpha=1", "sub", sub},
    // other names of the same
    {"greater.Tensor", "self, other", "greater", compare},
    {"greater.Scalar", "self, other", "greater", compare},
    {"greater_equal.Tensor", "self, other", "greater_equal", compare},
    {"greater_equal.Scalar", "self, other", "greater_equal", compare},
    {"less.Tensor", "self, other", "less", compare},
    {"less.Scalar", "self, other", "less", compare},
    {"less_equal.Tensor", "self, other", "less_equal", compare},
    {"less_equal.Scalar", "self, other", "less_equal", compare},
    {"not_equal.Tensor", "self, other", "not_equal", compare},
    {"not_equal.Scalar", "self, other", "not_equal", compare},
    {"multiply.Tensor", "self, other", "mul", mul},
    {"multiply.Scalar", "self, other", "mul", mul},
    {"subtract.Tensor", "self, other, alpha=1", "sub", sub},
    {"subtract.Scalar", "self, other, alpha=1", "sub", sub},
    {"divide.Tensor", "self, other", "div", div},
    {"divide.Scalar", "self, other", "div", div},
    {"true_divide.Tensor", "self, other", "div", div},
    {"true_divide.Scalar", "self, other", "div", div},
    {"where.self", "condition, self, other", "where", where},
    {"where.Scalar", "condition, self, other", "where", where},
    {"where.ScalarOther", "condition, self, other", "where", where},
    {"where.ScalarSelf", "condition, self, other", "where", where},
};

}  // namespace

extern constinit const Family arithmetic_family = {arithmetic_ops};

}  // namespace weft::importer

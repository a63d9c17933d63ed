#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "import/call.h"

// Functions of single elements.
namespace weft::importer {
namespace {

// One op of Weft, named by the table. Integers become f32, as in PyTorch.
void float_function(Call& c) {
  const auto x = c.tensor("self");
  c.give(c.b.one(c.op.how, {c.b.cast(x, to_float(x.dtype()))}));
}
void number_function(Call& c) { c.give(c.b.one(c.op.how, {c.tensor("self")})); }
// Whole numbers are what they are.
void rounding(Call& c) {
  const auto x = c.tensor("self");
  c.give(is_float(x.dtype()) ? c.b.one(c.op.how, {x}) : x);
}
// Nothing is NaN or infinite among integers.
void question(Call& c) {
  const auto x = c.tensor("self");
  const bool finite = std::string_view(c.op.how) == "isfinite";
  c.give(is_float(x.dtype()) ? c.b.one(c.op.how, {x}) : c.b.full(finite, x.shape(), DType::boolean));
}

double largest_finite(DType t) {
  switch (t) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    default: return double{std::numeric_limits<float>::max()};
  }
}
// Without other numbers: 0 for NaN, and the largest ones of the dtype for the infinities.
void nan_to_num(Call& c) {
  const auto x = c.tensor("self");
  const DType t = x.dtype();
  if (!is_float(t)) return c.give(x);
  const auto given = [&](const char* name, double otherwise) {
    return c.constant(c.has(name) ? c.real(name) : otherwise, t);
  };
  const auto infinite = c.b.one("isinf", {x}), above = c.b.less(0, x);
  const auto most = c.b.where(above, given("posinf", largest_finite(t)), given("neginf", -largest_finite(t)));
  c.give(c.b.where(c.b.one("isnan", {x}), given("nan", 0), c.b.where(infinite, most, x)));
}

// -1, 0 or 1; 0 for NaN, which Weft's sign keeps.
void sign(Call& c) {
  const auto x = c.tensor("self");
  c.give(c.b.sub(c.b.cast(c.b.less(0, x), x.dtype()), c.b.cast(c.b.less(x, 0), x.dtype())));
}

// Composed of others, in f32 for halves.
template <ir::Value (*F)(ir::Builder&, ir::Value)>
void composed(Call& c) {
  const auto x = c.tensor("self");
  const DType t = to_float(x.dtype());
  c.give(c.b.cast(F(c.b, c.b.cast(x, is_half(t) ? DType::f32 : t)), t));
}
ir::Value with_sign_of(ir::Builder& b, ir::Value y, ir::Value x) {
  return b.where(b.less(x, 0), b.neg(y), y);
}

ir::Value tan(ir::Builder& b, ir::Value x) { return b.div(b.sin(x), b.cos(x)); }
ir::Value cosh(ir::Builder& b, ir::Value x) {
  const auto half = b.exp(b.sub(b.abs(x), std::log(2)));  // overflows where cosh does
  return b.add(half, b.div(0.25, half));
}
// With u = e^|x| - 1: (u + u / (u + 1)) / 2 loses no digits near 0. From 20 on it is e^|x| / 2.
ir::Value sinh(ir::Builder& b, ir::Value x) {
  const auto size = b.abs(x), u = b.one("expm1", {b.minimum(size, 20)});
  const auto small = b.mul(b.add(u, b.div(u, b.add(u, 1))), 0.5), large = b.exp(b.sub(size, std::log(2)));
  return with_sign_of(b, b.where(b.less(size, 20), small, large), x);
}
// log(|x| + sqrt(x² + 1)), written so that it loses no digits near 0.
ir::Value asinh(ir::Builder& b, ir::Value x) {
  const auto size = b.abs(x), square = b.mul(size, size);
  const auto more = b.div(square, b.add(b.sqrt(b.add(square, 1)), 1));
  const auto large = b.add(b.log(size), std::log(2));  // x² may overflow
  return with_sign_of(b, b.where(b.less(size, 1e9), b.log1p(b.add(size, more)), large), x);
}
// Each root is NaN below 1, as acosh is; that of the product is not from -1 down.
ir::Value acosh(ir::Builder& b, ir::Value x) {
  const auto less = b.sub(x, 1);
  const auto small = b.log1p(b.add(less, b.mul(b.sqrt(less), b.sqrt(b.add(x, 1)))));
  return b.where(b.less(x, 1e9), small, b.add(b.log(x), std::log(2)));
}
ir::Value atanh(ir::Builder& b, ir::Value x) {
  const auto size = b.abs(x);
  return with_sign_of(b, b.mul(b.log1p(b.div(b.mul(size, 2), b.sub(1, size))), 0.5), x);
}

// ---- angles
constexpr double kHalfPi = 1.57079632679489661923;
// Of x in 0..1. Halved twice, tan a = x becomes at most tan(pi / 16), where eleven terms of the series are
// enough for f64: tan(a / 2) = x / (1 + sqrt(1 + x²)).
ir::Value atan_of_share(ir::Builder& b, ir::Value x) {
  for (int i = 0; i < 2; ++i) x = b.div(x, b.add(b.sqrt(b.add(b.mul(x, x), 1)), 1));
  const auto square = b.mul(x, x);
  auto sum = b.mul(square, 1.0 / 21);
  for (int k = 19; k > 1; k -= 2) sum = b.mul(square, b.sub(1.0 / k, sum));
  return b.mul(b.sub(x, b.mul(x, sum)), 4);
}
ir::Value atan(ir::Builder& b, ir::Value x) {
  const auto size = b.abs(x), large = b.less(1, size);
  const auto a = atan_of_share(b, b.where(large, b.div(1, size), size));
  return with_sign_of(b, b.where(large, b.sub(kHalfPi, a), a), x);
}
// Both are twice the angle of half a chord; (1 - x) (1 + x) loses no digits near 1.
ir::Value asin(ir::Builder& b, ir::Value x) {
  const auto other = b.sqrt(b.mul(b.sub(1, x), b.add(x, 1)));
  return b.mul(atan(b, b.div(x, b.add(other, 1))), 2);
}
ir::Value acos(ir::Builder& b, ir::Value x) {
  return b.mul(atan(b, b.sqrt(b.div(b.sub(1, x), b.add(x, 1)))), 2);
}
// Below 0, or the zero of that sign.
ir::Value is_negative(ir::Builder& b, ir::Value x) {
  return b.where(b.one("equal", {x, b.full(0, {}, x.dtype())}), b.less(b.div(1, x), 0), b.less(x, 0));
}
void atan2(Call& c) {
  const Operand both[] = {c.required("self"), c.required("other")};
  const auto given = c.promoted(both);
  const DType t = to_float(given[0].dtype()), inner = is_half(t) ? DType::f32 : t;
  auto& b = c.b;
  const auto y = b.cast(given[0], inner), x = b.cast(given[1], inner);
  const auto high = b.abs(y), wide = b.abs(x);
  const auto least = b.minimum(high, wide), most = b.maximum(high, wide);
  // Both may be 0, or infinite.
  const auto share = b.where(b.one("equal", {least, most}), 1, b.div(least, most));
  auto a = atan_of_share(b, b.where(b.less(0, most), share, b.mul(most, 0)));
  a = b.where(b.less(wide, high), b.sub(kHalfPi, a), a);
  a = b.where(is_negative(b, x), b.sub(2 * kHalfPi, a), a);
  c.give(b.cast(b.where(is_negative(b, y), b.neg(a), a), t));
}

// ---- erfc
ir::Value polynomial(ir::Builder& b, ir::Value x, std::span<const double> factors) {
  ir::Value sum = b.full(factors[0], {}, x.dtype());
  for (const double f : factors.subspan(1)) sum = b.add(b.mul(sum, x), f);
  return sum;
}
// erfc(x) exp(x²), by the rational functions of Cody, Rational Chebyshev approximations for the error
// function (Mathematics of Computation 23, 1969), for x from 0.46875 to 4 and from 4 on.
ir::Value scaled_erfc_middle(ir::Builder& b, ir::Value x) {
  constexpr double above[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                              6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
                              1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
  constexpr double below[] = {1.0,
                              1.57449261107098347e1,
                              1.17693950891312499e2,
                              5.37181101862009858e2,
                              1.62138957456669019e3,
                              3.29079923573345963e3,
                              4.36261909014324716e3,
                              3.43936767414372164e3,
                              1.23033935480374942e3};
  return b.div(polynomial(b, x, above), polynomial(b, x, below));
}
ir::Value scaled_erfc_far(ir::Builder& b, ir::Value x) {
  constexpr double above[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                              1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double below[] = {1.0,
                              2.56852019228982242e0,
                              1.87295284992346725e0,
                              5.27905102951428412e-1,
                              6.05183413124413191e-2,
                              2.33520497626869185e-3};
  const auto s = b.div(1, b.mul(x, x));
  const auto rest = b.mul(s, b.div(polynomial(b, s, above), polynomial(b, s, below)));
  return b.div(b.sub(std::numbers::inv_sqrtpi, rest), x);
}
// 1 - erf(x) has no digits left where erf is near 1. With x cut to sixteenths, h, the square of h is exact,
// and exp(-x²) = exp(-h²) exp(-(x - h) (x + h)) loses none.
ir::Value erfc(ir::Builder& b, ir::Value x) {
  const auto within = [&](double least, double most) {
    return b.one("clamp", {x}, {{"min", least}, {"max", most}});
  };
  constexpr double kFrom = 0.46875, kFar = 4, kZero = 30;  // from 27.3 on it is 0 in f64
  const auto y = within(kFrom, kZero), h = b.mul(b.one("trunc", {b.mul(y, 16)}), 1.0 / 16);
  const auto bell = b.mul(b.exp(b.neg(b.mul(h, h))), b.exp(b.neg(b.mul(b.sub(y, h), b.add(y, h)))));
  const auto scaled = b.where(b.less(kFar, x), scaled_erfc_far(b, within(kFar, kZero)),
                              scaled_erfc_middle(b, within(kFrom, kFar)));
  return b.where(b.less(kFrom, x), b.mul(bell, scaled), b.sub(1, b.erf(x)));
}

ir::Value log2(ir::Builder& b, ir::Value x) { return b.mul(b.log(x), 1 / std::log(2)); }
ir::Value log10(ir::Builder& b, ir::Value x) { return b.mul(b.log(x), 1 / std::log(10)); }
ir::Value exp2(ir::Builder& b, ir::Value x) { return b.power(2, x); }
ir::Value log_sigmoid(ir::Builder& b, ir::Value x) { return b.neg(b.one("softplus", {b.neg(x)})); }
ir::Value mish(ir::Builder& b, ir::Value x) { return b.mul(x, b.tanh(b.one("softplus", {x}))); }
ir::Value softsign(ir::Builder& b, ir::Value x) { return b.div(x, b.add(b.abs(x), 1)); }
ir::Value six(ir::Builder& b, ir::Value x) { return b.one("clamp", {x}, {{"min", 0.0}, {"max", 6.0}}); }
ir::Value hard_sigmoid(ir::Builder& b, ir::Value x) { return b.mul(six(b, b.add(x, 3)), 1.0 / 6); }
ir::Value hard_swish(ir::Builder& b, ir::Value x) { return b.mul(x, hard_sigmoid(b, x)); }

void gelu(Call& c) {
  const std::string how = c.text("approximate");
  if (how != "none" && how != "tanh") c.refuse(invalid("argument 'approximate': there is no '{}'", how));
  c.give(c.b.one("gelu", {c.tensor("self")}, {{"approximate", int64_t{how == "tanh"}}}));
}
void relu6(Call& c) { c.give(six(c.b, c.tensor("self"))); }
void hardtanh(Call& c) {
  c.give(c.b.one("clamp", {c.tensor("self")}, {{"min", c.real("min_val")}, {"max", c.real("max_val")}}));
}
void leaky_relu(Call& c) {
  c.give(c.b.one("leaky_relu", {c.tensor("self")}, {{"slope", c.real("negative_slope")}}));
}
// PyTorch's is x itself where beta x is above the threshold, which at 20 no float of 32 bits tells.
void softplus(Call& c) {
  const auto x = c.tensor("self");
  const auto y = c.b.one("softplus", {x}, {{"beta", c.real("beta")}});
  const double threshold = c.real("threshold");
  if (threshold == 20 && x.dtype() != DType::f64) return c.give(y);
  c.give(c.b.where(c.b.less(threshold, c.b.mul(x, c.real("beta"))), x, y));
}

// scale (x where it is positive, alpha (exp(input_scale x) - 1) elsewhere).
ir::Value elu_of(Call& c, double alpha, double scale, double input_scale) {
  const auto given = c.tensor("self");
  const auto x = c.b.cast(given, is_half(given.dtype()) ? DType::f32 : given.dtype());
  const auto negative = c.b.mul(c.b.one("expm1", {c.b.mul(c.b.minimum(x, 0), input_scale)}), alpha * scale);
  return c.b.cast(c.b.where(c.b.less(0, x), c.b.mul(x, scale), negative), given.dtype());
}
void elu(Call& c) { c.give(elu_of(c, c.real("alpha"), c.real("scale"), c.real("input_scale"))); }
void celu(Call& c) { c.give(elu_of(c, c.real("alpha"), 1, 1 / c.real("alpha"))); }
void selu(Call& c) {
  c.give(elu_of(c, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1));
}

// One slope, or one for each channel.
void prelu(Call& c) {
  const auto x = c.tensor("self");
  auto slope = c.tensor("weight");
  if (slope.rank() == 1 && x.rank() > 1) {
    Shape shape(slope.shape());
    for (int64_t i = 2; i < x.rank(); ++i) shape.push_back(1);
    slope = c.b.reshape(slope, shape);
  }
  c.give(c.b.where(c.b.less(0, x), x, c.b.mul(x, slope)));
}
void threshold(Call& c) {
  const auto x = c.tensor("self");
  const auto least = c.constant(c.number("threshold"), x.dtype()),
             value = c.constant(c.number("value"), x.dtype());
  c.give(c.b.where(c.b.one("less_equal", {x, least}), value, x));
}
void glu(Call& c) {
  const auto x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  if (x.rank() == 0) return c.refuse(invalid("a tensor without axes has no halves"));
  const Dim half = floor_div(x.shape()[static_cast<size_t>(axis)], 2);
  const auto part = [&](Dim from, Dim to) {
    return c.b.one("slice", {x}, {{"axis", axis}, {"start", Shape{from}}, {"stop", Shape{to}}});
  };
  c.give(c.b.mul(part(0, half), c.b.sigmoid(part(half, half + half))));
}

void bitwise_not(Call& c) {
  const auto x = c.tensor("self");
  c.give(x.dtype() == DType::boolean ? c.b.one("logical_not", {x}) : c.b.bit_xor(x, -1));
}
void logical_not(Call& c) { c.give(c.b.one("logical_not", {c.b.cast(c.tensor("self"), DType::boolean)})); }

constexpr AtenOp pointwise_ops[] = {
    {"abs.default", "self", "abs", number_function},
    {"acosh.default", "self", "log1p, sqrt", composed<acosh>},
    {"acos.default", "self", "sqrt, div", composed<acos>},
    {"asin.default", "self", "sqrt, div", composed<asin>},
    {"asinh.default", "self", "log1p, sqrt", composed<asinh>},
    {"atan.default", "self", "sqrt, div", composed<atan>},
    {"atan2.default", "self, other", "sqrt, div", atan2},
    {"atanh.default", "self", "log1p, div", composed<atanh>},
    {"bitwise_not.default", "self", "bit_xor", bitwise_not},
    {"ceil.default", "self", "ceil", rounding},
    {"celu.default", "self, alpha=1.0", "expm1, where", celu},
    {"cos.default", "self", "cos", float_function},
    {"cosh.default", "self", "exp", composed<cosh>},
    {"elu.default", "self, alpha=1, scale=1, input_scale=1", "expm1, where", elu},
    {"erf.default", "self", "erf", float_function},
    {"erfc.default", "self", "erf, exp, div", composed<erfc>},
    {"exp.default", "self", "exp", float_function},
    {"exp2.default", "self", "power", composed<exp2>},
    {"expm1.default", "self", "expm1", float_function},
    {"floor.default", "self", "floor", rounding},
    {"gelu.default", "self, approximate=none", "gelu", gelu},
    {"glu.default", "self, dim=-1", "slice, sigmoid, mul", glu},
    {"hardsigmoid.default", "self", "clamp", composed<hard_sigmoid>},
    {"hardswish.default", "self", "clamp, mul", composed<hard_swish>},
    {"hardtanh.default", "self, min_val=-1, max_val=1", "clamp", hardtanh},
    {"isfinite.default", "self", "isfinite", question},
    {"isinf.default", "self", "isinf", question},
    {"isnan.default", "self", "isnan", question},
    {"leaky_relu.default", "self, negative_slope=0.01", "leaky_relu", leaky_relu},
    {"log.default", "self", "log", float_function},
    {"log10.default", "self", "log", composed<log10>},
    {"log1p.default", "self", "log1p", float_function},
    {"log2.default", "self", "log", composed<log2>},
    {"log_sigmoid.default", "self", "softplus", composed<log_sigmoid>},
    {"logical_not.default", "self", "logical_not", logical_not},
    {"mish.default", "self", "softplus, tanh, mul", composed<mish>},
    {"nan_to_num.default", "self, nan=None, posinf=None, neginf=None", "isnan, isinf, where", nan_to_num},
    {"neg.default", "self", "neg", number_function},
    {"prelu.default", "self, weight", "where, mul", prelu},
    {"reciprocal.default", "self", "reciprocal", float_function},
    {"relu.default", "self", "relu", number_function},
    {"relu6.default", "self", "clamp", relu6},
    {"round.default", "self", "round", rounding},
    {"rsqrt.default", "self", "rsqrt", float_function},
    {"selu.default", "self", "expm1, where", selu},
    {"sigmoid.default", "self", "sigmoid", float_function},
    {"sign.default", "self", "less, sub", sign},
    {"silu.default", "self", "silu", number_function},
    {"sin.default", "self", "sin", float_function},
    {"sinh.default", "self", "expm1, exp", composed<sinh>},
    {"softplus.default", "self, beta=1, threshold=20", "softplus", softplus},
    {"softsign.default", "self", "abs, div", composed<softsign>},
    {"sqrt.default", "self", "sqrt", float_function},
    {"square.default", "self", "square", number_function},
    {"tan.default", "self", "sin, cos, div", composed<tan>},
    {"tanh.default", "self", "tanh", float_function},
    {"threshold.default", "self, threshold=, value=", "where", threshold},
    {"trunc.default", "self", "trunc", rounding},
};

}  // namespace

extern constinit const Family pointwise_family = {pointwise_ops};

}  // namespace weft::importer

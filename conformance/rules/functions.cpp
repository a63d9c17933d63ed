#include <cmath>
#include <stdexcept>

#include "conformance/rules.h"

// Functions that no machine rounds correctly: exp, sin, power... And sqrt, for which some languages allow
// errors.
namespace weft::conformance {
namespace {

Real exp_of(Real x) { return std::exp(x); }
Real log_of(Real x) { return std::log(x); }
Real log1p_of(Real x) { return std::log1p(x); }
Real sqrt_of(Real x) { return std::sqrt(x); }
Real sin_of(Real x) { return std::sin(x); }
Real cos_of(Real x) { return std::cos(x); }
Real tanh_of(Real x) { return std::tanh(x); }
Real erf_of(Real x) { return std::erf(x); }
Results<Real> power(const CallAttrs&, Inputs<Real> in) {
  return paired<Real>(in, in[0]->dtype, [](DType, Real a, Real b) { return std::pow(a, b); });
}

// The points at which a function's value is a fraction or infinite. By the theorem of Lindemann and
// Weierstrass exp, log, sin, cos and tanh have no others.
const Rational kInfinity(1, 0), kMinusInfinity(-1, 0);
struct Known {
  Rational x, y;
};
Rational at(const Rational& x, std::initializer_list<Known> points) {
  for (const auto& known : points)
    if (known.x == x) return known.y;
  throw std::domain_error("the value is no fraction");
}
Rational exp_exact(Rational x) { return at(x, {{0, 1}, {kMinusInfinity, 0}, {kInfinity, kInfinity}}); }
Rational log_exact(Rational x) { return at(x, {{1, 0}, {0, kMinusInfinity}, {kInfinity, kInfinity}}); }
Rational log1p_exact(Rational x) { return log_exact(x + 1); }
Rational sqrt_exact(Rational x) { return sqrt(x); }
Rational sin_exact(Rational x) { return at(x, {{0, 0}}); }
Rational cos_exact(Rational x) { return at(x, {{0, 1}}); }
Rational tanh_exact(Rational x) { return at(x, {{0, 0}, {kMinusInfinity, -1}, {kInfinity, 1}}); }
Rational erf_exact(Rational x) { return tanh_exact(x); }
template <Rational (*f)(Rational)>
Results<Rational> each_exact(const CallAttrs&, Inputs<Rational> in) {
  auto y = *in[0];
  for (Rational& v : y.v) v = f(v);
  return {y};
}
Rational power_of(const Rational& a, const Rational& b) {
  const __int128 n = whole(b);
  Rational y = 1;
  for (__int128 i = n < 0 ? -n : n; i > 0; --i) y = y * a;
  return n < 0 ? Rational(1) / y : y;
}
Results<Rational> power_exact(const CallAttrs&, Inputs<Rational> in) {
  return paired<Rational>(in, in[0]->dtype,
                          [](DType, const Rational& a, const Rational& b) { return power_of(a, b); });
}

Errors exp_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) { return std::exp(x + e) - std::exp(x); });
}
Errors log_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) { return e < x ? -std::log1p(-e / x) : kInf; });
}
Errors log1p_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) { return e < 1 + x ? -std::log1p(-e / (1 + x)) : kInf; });
}
Errors sqrt_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) { return e <= x ? e / (std::sqrt(x) + std::sqrt(x - e)) : kInf; });
}
// The slope is at most 1, and two values differ by at most 2.
Errors wave_bound(const BoundCall& c) {
  return each_error(c, [](Real, Real e) { return std::min<Real>(e, 2); });
}
// The slope decreases with |x|: it is steepest where the interval is nearest to 0.
Real nearest_to_0(Real x, Real e) { return std::max<Real>(std::fabs(x) - e, 0); }
Errors tanh_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) {
    const Real slope = 1 / std::cosh(nearest_to_0(x, e));
    return std::min<Real>(e * slope * slope, 2);
  });
}
Errors erf_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) {
    const Real m = nearest_to_0(x, e);
    return std::min<Real>(e * 2 / std::sqrt(std::acos(Real{-1})) * std::exp(-m * m), 2);
  });
}

// For a > 0, a^b is monotone in a and in b, so the error is largest at a corner of the two intervals; for a <
// 0 and an integer b, |a|^b is. An interval of a that contains 0 is covered if b is exact, integer and
// positive.
Real power_moves(Real a, Real ea, Real b, Real eb, Real y) {
  if (ea == 0 && eb == 0) return 0;
  const bool whole = eb == 0 && b == std::trunc(b);
  if (std::fabs(a) > ea && (a > 0 || whole)) {
    Real most = 0;
    for (const Real x : {std::fabs(a) - ea, std::fabs(a) + ea})
      for (const Real e : {b - eb, b + eb}) most = std::max(most, std::fabs(std::pow(x, e) - y));
    return most;
  }
  if (eb == 0 && b == 0) return 0;
  return whole && b > 0 ? std::pow(std::fabs(a) + ea, b) + y : kInf;
}
Errors power_bound(const BoundCall& c) {
  return paired_errors(c, [&](Real a, Real ea, Real b, Real eb, Real y) {
    return with_rounding(c, y, power_moves(a, ea, b, eb, y));
  });
}

// c is that of the least accurate language that kernels are rendered to: OpenCL C 3.0, table "ULP values for
// single precision built-in math functions". An ulp is at most one eps of the result.
constexpr Rule kFunctionsRules[] = {
    {"exp", each<exp_of>, each_exact<exp_exact>, "3 eps |y|, after exp(x + e) - exp(x)", 3, exp_bound, true},
    {"log", each<log_of>, each_exact<log_exact>, "3 eps |y|, after -log(1 - e / x)", 3, log_bound, true},
    {"log1p", each<log1p_of>, each_exact<log1p_exact>, "2 eps |y|, after -log(1 - e / (1 + x))", 2,
     log1p_bound, true},
    {"sqrt", each<sqrt_of>, each_exact<sqrt_exact>, "3 eps |y|, after sqrt(x) - sqrt(x - e)", 3, sqrt_bound,
     true},
    {"sin", each<sin_of>, each_exact<sin_exact>, "4 eps |y|, after min(e, 2)", 4, wave_bound, true},
    {"cos", each<cos_of>, each_exact<cos_exact>, "4 eps |y|, after min(e, 2)", 4, wave_bound, true},
    {"tanh", each<tanh_of>, each_exact<tanh_exact>, "5 eps |y|, after e / cosh(|x| - e)^2", 5, tanh_bound,
     true},
    {"erf", each<erf_of>, each_exact<erf_exact>, "16 eps |y|, after e 2 / sqrt(pi) exp(-(|x| - e)^2)", 16,
     erf_bound, true},
    {"power", power, power_exact, "16 eps |y|, after |(a +- ea)^(b +- eb) - y|", 16, power_bound, true},
};

}  // namespace

Rules functions_rules() { return kFunctionsRules; }

}  // namespace weft::conformance

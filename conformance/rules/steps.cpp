#include <cmath>

#include "conformance/rules.h"

// Ops that choose, step or cut: no rounding, but a jump or a kink that an uncertain operand may cross.
namespace weft::conformance {
namespace {

Real floor(Real x) { return std::floor(x); }
Real round(Real x) { return std::nearbyint(x); }
Rational round(const Rational& x) {
  const Rational below = floor(x), half = x - below;
  const bool even = floor(below / 2) * 2 == below;
  return half < Rational(1, 2) || (half == Rational(1, 2) && even) ? below : below + 1;
}
template <class S>
Results<S> floor_of(const CallAttrs&, Inputs<S> in) {
  ArrayOf<S> y = *in[0];
  for (S& v : y.v) v = floor(v);
  return {y};
}
template <class S>
Results<S> round_of(const CallAttrs&, Inputs<S> in) {
  ArrayOf<S> y = *in[0];
  for (S& v : y.v) v = round(v);
  return {y};
}

Real remainder(DType t, Real a, Real b) {
  if (is_float(t)) {
    const Real r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  if (b == 0) return 0;
  const __int128 r = whole(a) % whole(b);
  return static_cast<Real>(r != 0 && (r < 0) != (b < 0) ? r + whole(b) : r);
}
Rational remainder(DType, const Rational& a, const Rational& b) { return a - b * floor(a / b); }
template <class S>
Results<S> mod(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType t, S a, S b) { return remainder(t, a, b); });
}
template <class S>
Results<S> maximum(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType, S a, S b) { return b < a || !(a == a) ? a : b; });
}
template <class S>
Results<S> minimum(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType, S a, S b) { return a < b || !(a == a) ? a : b; });
}

/// The change of a nondecreasing function is largest at the ends of the interval.
template <Real (*f)(Real)>
Errors step_bound(const BoundCall& c) {
  return each_error(c, [](Real x, Real e) { return std::max(f(x + e) - f(x), f(x) - f(x - e)); });
}
// If the integer part q of the quotient is certain, y = a - b q changes by ea + |q| eb; otherwise y may be
// anything up to b.
Errors mod_bound(const BoundCall& c) {
  return paired_errors(c, [&](Real a, Real ea, Real b, Real eb, Real y) {
    if (ea == 0 && eb == 0) return with_rounding(c, y, 0);
    if (!is_float(c.out.dtype) || !(eb < std::fabs(b))) return kInf;
    const Real q = std::floor(a / b);
    bool sure = true;
    for (const Real x : {a - ea, a + ea})
      for (const Real d : {b - eb, b + eb}) sure = sure && std::floor(x / d) == q;
    return with_rounding(c, y, sure ? ea + std::fabs(q) * eb : std::fabs(b) + eb);
  });
}
Errors either_bound(const BoundCall& c) {
  return paired_errors(c, [](Real, Real ea, Real, Real eb, Real) { return std::max(ea, eb); });
}

constexpr Rule kStepsRules[] = {
    {"floor", floor_of<Real>, floor_of<Rational>, "exact; what floor(x - e) and floor(x + e) say", 0,
     step_bound<floor>},
    {"round", round_of<Real>, round_of<Rational>, "exact; what round(x - e) and round(x + e) say", 0,
     step_bound<round>},
    {"mod", mod<Real>, mod<Rational>, "one rounding, after ea + |floor(a / b)| eb; |b| where that is unsure",
     0.5L, mod_bound},
    {"maximum", maximum<Real>, maximum<Rational>, "exact; max(ea, eb)", 0, either_bound},
    {"minimum", minimum<Real>, minimum<Rational>, "exact; max(ea, eb)", 0, either_bound},
};

}  // namespace

Rules steps_rules() { return kStepsRules; }

}  // namespace weft::conformance

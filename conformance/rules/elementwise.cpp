#include <cmath>
#include <stdexcept>

#include "conformance/rules.h"

namespace weft::conformance {
namespace {

template <class S>
S divide(DType t, S a, S b) {
  if (is_float(t)) return a / b;
  if (b == S(0)) return 0;
  if constexpr (std::is_same_v<S, Real>)
    return wrap_to(t, whole(a) / whole(b));
  else
    return trunc(a / b);
}
template <class S>
Results<S> add(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType t, S a, S b) { return arithmetic(t, a, b, std::plus<>()); });
}
template <class S>
Results<S> sub(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType t, S a, S b) { return arithmetic(t, a, b, std::minus<>()); });
}
template <class S>
Results<S> mul(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType t, S a, S b) {
    if constexpr (std::is_same_v<S, Real>)  // u64 products need 128 unsigned bits: only their low half counts
      if (!is_float(t))
        return wrap_to(t, whole(wrap_to(DType::i64, whole(a))) * whole(wrap_to(DType::i64, whole(b))));
    return S(a * b);
  });
}
template <class S>
Results<S> div(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, in[0]->dtype, [](DType t, S a, S b) { return divide<S>(t, a, b); });
}
template <class S>
Results<S> less(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, DType::boolean, [](DType, S a, S b) { return S(a < b ? 1 : 0); });
}
template <class S>
Results<S> equal(const CallAttrs&, Inputs<S> in) {
  return paired<S>(in, DType::boolean, [](DType, S a, S b) { return S(a == b ? 1 : 0); });
}
template <class S>
Results<S> where(const CallAttrs&, Inputs<S> in) {
  const auto &c = *in[0], &a = *in[1], &b = *in[2];
  const Dims shape = broadcast_shape(c.shape, broadcast_shape(a.shape, b.shape));
  return {make<S>(a.dtype, shape, [&](const Dims& at) {
    return c.v[broadcast_position(at, c.shape)] == S(0) ? b.v[broadcast_position(at, b.shape)]
                                                        : a.v[broadcast_position(at, a.shape)];
  })};
}

// Integer to integer wraps; everything else is one conversion, which the caller rounds to the float dtype.
template <class S>
Results<S> cast(const CallAttrs& a, Inputs<S> in) {
  const DType to = a.dtype("dtype"), from = in[0]->dtype;
  ArrayOf<S> y{to, in[0]->shape, in[0]->v};
  if constexpr (std::is_same_v<S, Real>)
    for (Real& v : y.v) {
      if (to == DType::boolean)
        v = v != 0;
      else if (!is_float(to))
        v = is_float(from) ? round_to(to, v) : wrap_to(to, whole(v));
    }
  else
    for (S& v : y.v)
      if (to == DType::boolean)
        v = v == S(0) ? 0 : 1;
      else if (!is_float(to))
        v = whole(is_float(from) ? round_to(to, trunc(v).real()) : wrap_to(to, whole(v.real())));
  return {y};
}
template <class S>
Results<S> full(const CallAttrs& a, Inputs<S>) {
  const DType t = a.dtype("dtype");
  const double value = a.real("value") * static_cast<double>(a.dims("times")[0]);
  const Dims shape = a.dims("shape");
  const auto n = static_cast<size_t>(count(shape));
  if constexpr (std::is_same_v<S, Real>)
    return {{t, shape, std::vector<S>(n, is_float(t) ? Real(value) : round_to(t, value))}};
  else
    return {{t, shape, std::vector<S>(n, Rational::of(is_float(t) ? Real(value) : round_to(t, value)))}};
}

// The sum of two subnormals is exact: results too small for eps |y| to be a step are not rounded.
Errors add_sub_bound(const BoundCall& c) {
  return paired_errors(c, [&](Real, Real ea, Real, Real eb, Real y) {
    const DType t = c.out.dtype;
    const bool exact = is_float(t) && y + ea + eb < format(t).least_normal();
    return exact ? ea + eb : with_rounding(c, y, ea + eb);
  });
}
// Times 1 or -1, if exactly known, does not round.
Errors mul_bound(const BoundCall& c) {
  return paired_errors(c, [&](Real a, Real ea, Real b, Real eb, Real y) {
    if (std::fabs(a) == 1 && ea == 0) return eb;
    if (std::fabs(b) == 1 && eb == 0) return ea;
    return with_rounding(c, y, std::fabs(a) * eb + std::fabs(b) * ea + ea * eb);
  });
}
Errors div_bound(const BoundCall& c) {
  return paired_errors(c, [&](Real, Real ea, Real b, Real eb, Real y) {
    const Real carried = ea == 0 && eb == 0  ? Real{0}
                         : eb < std::fabs(b) ? (ea + y * eb) / (std::fabs(b) - eb)
                                             : kInf;
    return with_rounding(c, y, carried);
  });
}
Errors compare_bound(const BoundCall& c) {
  return paired_errors(c, [](Real a, Real ea, Real b, Real eb, Real) {
    return ea + eb > 0 && std::fabs(a - b) <= ea + eb ? Real{1} : Real{0};
  });
}

Errors where_bound(const BoundCall& c) {
  const auto spread = [&](const Array& x, const Errors& v) { return broadcast(like(x, v), c.out.shape).v; };
  const auto &k = *c.in[0], &a = *c.in[1], &b = *c.in[2];
  const Errors condition = spread(k.value, k.value.v), unsure = spread(k.value, k.error);
  const Errors va = spread(a.value, a.value.v), vb = spread(b.value, b.value.v);
  const Errors ea = spread(a.value, a.error), eb = spread(b.value, b.error);
  Errors e;
  for (size_t i = 0; i < condition.size(); ++i)
    e.push_back(unsure[i] != 0      ? std::max(ea[i], eb[i]) + std::fabs(va[i] - vb[i])
                : condition[i] != 0 ? ea[i]
                                    : eb[i]);
  return e;
}
Errors cast_bound(const BoundCall& c) {
  const auto& x = *c.in[0];
  Errors e;
  for (size_t i = 0; i < x.error.size(); ++i) {
    const Real v = x.value.v[i], ex = x.error[i];
    if (is_float(c.out.dtype)) {
      const Real step = format(c.out.dtype).spacing(std::fabs(c.out.v[i]) + ex);
      e.push_back(ex == 0 && round_to(c.out.dtype, v) == v ? Real{0} : ex + step / 2);
    } else {
      const bool sure = ex == 0 || round_to(c.out.dtype, v - ex) == round_to(c.out.dtype, v + ex);
      e.push_back(sure ? Real{0} : ex + 1);
    }
  }
  return e;
}
Errors constant_bound(const BoundCall& c) {
  Errors e;
  for (const Real v : c.out.v) e.push_back(std::fabs(round_to(c.out.dtype, v) - v));
  return e;
}
constexpr Rule kElementwiseRules[] = {
    {"add", add<Real>, add<Rational>, "one rounding: eps/2 |y|, after ea + eb", 0.5L, add_sub_bound, true},
    {"sub", sub<Real>, sub<Rational>, "one rounding: eps/2 |y|, after ea + eb", 0.5L, add_sub_bound, true},
    {"mul", mul<Real>, mul<Rational>, "one rounding: eps/2 |y|, after |a| eb + |b| ea + ea eb", 0.5L,
     mul_bound, true},
    // OpenCL C 3.0, table "ULP values for single precision built-in math functions": an ulp is at most one
    // eps of the result.
    {"div", div<Real>, div<Rational>, "2.5 eps |y|, after (ea + |y| eb) / (|b| - eb)", 2.5L, div_bound, true},
    {"less", less<Real>, less<Rational>, "exact; unsure where |a - b| <= ea + eb", 0, compare_bound, true},
    {"equal", equal<Real>, equal<Rational>, "exact; unsure where |a - b| <= ea + eb", 0, compare_bound, true},
    {"where", where<Real>, where<Rational>, "exact; an unsure condition adds |a - b|", 0, where_bound, true},
    {"cast", cast<Real>, cast<Rational>,
     "exact: correctly rounded, so half a step when something else reads it", 0, cast_bound, true},
    {"full", full<Real>, full<Rational>,
     "exact: correctly rounded, so its rounding when something else reads it", 0, constant_bound, true},
};

}  // namespace

Rules elementwise_rules() { return kElementwiseRules; }

}  // namespace weft::conformance

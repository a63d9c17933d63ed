#pragma once
#include <algorithm>
#include <functional>

#include "conformance/bounds.h"

// Helpers for the files of conformance/rules. Each file defines `Rules <file>_rules()`: the truth of some
// primitive ops and the largest error of a right kernel. The build lists the folder.
namespace weft::conformance {

template <class S>
using Inputs = std::span<const ArrayOf<S>* const>;
template <class S>
using Results = std::vector<ArrayOf<S>>;
template <class S>
using Truth = Results<S> (*)(const CallAttrs&, Inputs<S>);
using Errors = std::vector<Real>;
/// The error of an element that may be anything, even if the truth is infinite or NaN.
inline constexpr Real kOpen = -kInf;

/// A primitive call as `propagate` sees it.
struct BoundCall {
  const ir::OpDef& op;
  ir::AttrView attrs;
  std::span<const Bounded* const> in;
  const Array& out;
  Real c;
};

/// A primitive op: its truth, and its line in the table of bounds.
struct Rule {
  const char* op;
  Truth<Real> truth;
  Truth<Rational> exact;  ///< in fractions; raises std::logic_error where the value is none (exp 1)
  const char* derivation;
  Real c;                                      ///< roundings of one element, in ulp of the compute type
  Errors (*propagate)(const BoundCall& call);  ///< errors of output 0
  bool bitwise = false;                        ///< the sign of a zero counts too
  Errors (*propagate_second)(const BoundCall& call) = nullptr;  ///< errors of output 1; null: it is exact
};
using Rules = std::span<const Rule>;

/// Null if no file of the folder has the op.
const Rule* find_rule(std::string_view op);
/// conformance/rules, in order; each file's rules.
std::span<const Rules> rule_files();

// ---- truth

Dims coordinates(int64_t i, const Dims& shape);
/// The next coordinates in row-major order; zeros after the last.
inline void advance(Dims& at, const Dims& shape) {
  for (size_t d = at.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
}
size_t position(const Dims& at, const Dims& shape);
/// The offset in a broadcast operand of the element for index `at` of the result.
size_t broadcast_position(const Dims& at, const Dims& shape);
Dims broadcast_shape(const Dims& a, const Dims& b);

/// The positions in a broadcast operand of `operand`'s shape, one for each element of `whole` in row-major
/// order.
class Walk {
 public:
  Walk(const Dims& whole, const Dims& operand);
  size_t position() const { return static_cast<size_t>(position_); }
  void next() {
    for (size_t d = at_.size(); d-- > 0;) {
      position_ += step_[d];
      if (++at_[d] < whole_[d]) return;
      position_ -= step_[d] * whole_[d], at_[d] = 0;
    }
  }

 private:
  Dims whole_, at_, step_;  // step_: by how much the position grows along an axis of `whole`
  int64_t position_ = 0;
};

/// y[at] = f(at) over a shape.
template <class S, class F>
ArrayOf<S> make(DType t, Dims shape, F f) {
  ArrayOf<S> y{t, std::move(shape), {}};
  const int64_t n = count(y.shape);
  y.v.reserve(static_cast<size_t>(n));
  Dims at(y.shape.size());
  for (int64_t i = 0; i < n; ++i, advance(at, y.shape)) y.v.push_back(f(at));
  return y;
}

inline __int128 whole(Real x) { return static_cast<__int128>(x); }
inline Real to_real(Real x) { return x; }
inline Real to_real(const Rational& x) { return x.real(); }

/// f on floats as they are, on integers modulo their width.
template <class S, class F>
S arithmetic(DType t, const S& a, const S& b, F f) {
  if constexpr (std::is_same_v<S, Real>)
    return is_float(t) ? static_cast<Real>(f(a, b)) : wrap_to(t, f(whole(a), whole(b)));
  else
    return f(a, b);
}

/// y = f(dtype, a, b) for each pair of a broadcast.
template <class S, class F>
Results<S> paired(Inputs<S> in, DType out, F f) {
  const auto &a = *in[0], &b = *in[1];
  ArrayOf<S> y{out, broadcast_shape(a.shape, b.shape), {}};
  const auto n = static_cast<size_t>(count(y.shape));
  y.v.reserve(n);
  Walk of_a(y.shape, a.shape), of_b(y.shape, b.shape);
  for (size_t i = 0; i < n; ++i, of_a.next(), of_b.next())
    y.v.push_back(f(a.dtype, a.v[of_a.position()], b.v[of_b.position()]));
  return {std::move(y)};
}
/// y = f(x) for each element.
template <Real (*f)(Real)>
Results<Real> each(const CallAttrs&, Inputs<Real> in) {
  Array y = *in[0];
  for (Real& v : y.v) v = f(v);
  return {y};
}

// ---- bounds

/// Halves are computed in f32 and rounded once more.
DType compute_type(DType t);
/// The rounding of a result of size |y| + error: c ulp of the compute type, and half an ulp of a half's own
/// type. An ulp is at most eps |y|, and at least the least subnormal.
Real rounding(DType t, Real size, Real c);
/// gamma(n) = n u / (1 - n u): n roundings of u = eps / 2 each (Higham, Accuracy and stability, lemma 3.1).
Real gamma(DType t, Real n);

Array like(const Array& a, Errors v);
Errors absolute(const Array& a);
/// The call's own op on other operands, as f64 so that nothing wraps around.
Errors run(const BoundCall& c, std::vector<Array> in);
/// The propagated error of a result plus its own rounding.
Real with_rounding(const BoundCall& c, Real y, Real carried);
/// f(a, ea, b, eb, |y|) over the elements of a broadcast pair.
template <class F>
Errors paired_errors(const BoundCall& c, F f) {
  const auto spread = [&](const Bounded& x) {
    return std::pair{broadcast(x.value, c.out.shape).v, broadcast(like(x.value, x.error), c.out.shape).v};
  };
  const auto [a, ea] = spread(*c.in[0]);
  const auto [b, eb] = spread(*c.in[1]);
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i)
    e.push_back(f(a[i], ea[i], b[i], eb[i], c.out.v[i] < 0 ? -c.out.v[i] : c.out.v[i]));
  return e;
}
/// f(x, e) = the change of a function when x changes by e, plus the function's own rounding.
template <class F>
Errors each_error(const BoundCall& c, F f) {
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) {
    const Real x = c.in[0]->value.v[i], ex = c.in[0]->error[i], y = c.out.v[i];
    e.push_back(with_rounding(c, y < 0 ? -y : y, ex == 0 ? Real{0} : f(x, ex)));
  }
  return e;
}
/// Sums: `terms` = sum of |terms|, and the number of roundings of each output. A product may lose half a
/// subnormal step.
Errors summed(const BoundCall& c, const Errors& terms, const Errors& carried, const Errors& roundings,
              bool products);
/// Sums of n products of the two operands (matmul, conv): n roundings each, in any order.
Errors sum_of_products(const BoundCall& c);
/// Elements that are only moved keep their errors.
Errors moved(const BoundCall& c);
/// Exact, and so are its operands: integers.
Errors none(const BoundCall& c);

}  // namespace weft::conformance

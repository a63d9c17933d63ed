#include <cmath>

#include "conformance/rules.h"

namespace weft::conformance {
namespace {

template <class S, class Step>
ArrayOf<S> folded(const CallAttrs& a, const ArrayOf<S>& x, const S& start, const Step& step) {
  const Dims axes = a.dims("axes");
  Dims kept = x.shape, shape;
  for (size_t d = 0; d < kept.size(); ++d) {
    const bool fold = axes.empty() || std::find(axes.begin(), axes.end(), int64_t(d)) != axes.end();
    if (fold) kept[d] = 1;
    if (!fold || a.integer("keep")) shape.push_back(kept[d]);
  }
  ArrayOf<S> y{x.dtype, shape, std::vector<S>(static_cast<size_t>(count(kept)), start)};
  Walk to(x.shape, kept);
  for (size_t i = 0; i < x.v.size(); ++i, to.next()) {
    S& total = y.v[to.position()];
    total = step(total, x.v[i]);
  }
  return y;
}
template <class S>
Results<S> sum(const CallAttrs& a, Inputs<S> in) {
  const DType t = in[0]->dtype;
  return {
      folded<S>(a, *in[0], S(0), [t](const S& x, const S& y) { return arithmetic(t, x, y, std::plus<>()); })};
}
template <class S>
S times(DType t, const S& a, const S& b) {
  if constexpr (std::is_same_v<S, Real>)  // as for mul: only the low half of an integer product counts
    if (!is_float(t))
      return wrap_to(t, whole(wrap_to(DType::i64, whole(a))) * whole(wrap_to(DType::i64, whole(b))));
  return a * b;
}
template <class S>
Results<S> prod(const CallAttrs& a, Inputs<S> in) {
  const DType t = in[0]->dtype;
  return {folded<S>(a, *in[0], S(1), [t](const S& x, const S& y) { return times<S>(t, x, y); })};
}
/// max, or min if `smallest`.
template <class S, bool smallest>
Results<S> extreme(const CallAttrs& a, Inputs<S> in) {
  const auto better = [](const S& v, const S& m) { return smallest ? v < m : m < v; };
  if constexpr (std::is_same_v<S, Real>) {
    const DType t = in[0]->dtype;
    const Real start = is_float(t) ? (smallest ? kInf : -kInf) : smallest ? highest(t) : lowest(t);
    return {folded<S>(a, *in[0], start, [&](Real m, Real v) {
      return std::isnan(m) || std::isnan(v) ? m + v : better(v, m) ? v : m;
    })};
  } else {
    if (in[0]->v.empty()) throw std::domain_error("no fraction");
    const auto [least, most] = std::minmax_element(in[0]->v.begin(), in[0]->v.end());
    const S start = smallest ? *most : *least;
    return {folded<S>(a, *in[0], start, [&](const S& m, const S& v) { return better(v, m) ? v : m; })};
  }
}

/// The sum of each element and all before it along the axis.
template <class S>
Results<S> cumsum(const CallAttrs& a, Inputs<S> in) {
  const auto& x = *in[0];
  const auto axis = static_cast<size_t>(a.integer("axis"));
  const int64_t lag = a.integer("exclusive") ? 1 : 0, size = x.shape[axis];
  return {make<S>(x.dtype, x.shape, [&](const Dims& at) {
    S total(0);
    const bool reverse = a.integer("reverse") != 0;
    Dims from = at;
    for (int64_t n = 0, terms = (reverse ? size - 1 - at[axis] : at[axis]) + 1 - lag; n < terms; ++n) {
      from[axis] = reverse ? size - 1 - n : n;
      total = arithmetic(x.dtype, total, x.v[position(from, x.shape)], std::plus<>());
    }
    return total;
  })};
}

template <class S>
Results<S> matmul(const CallAttrs& attrs, Inputs<S> in) {
  const auto &a = *in[0], &b = *in[1];
  const bool ta = attrs.integer("transpose_a"), tb = attrs.integer("transpose_b");
  const size_t ra = a.shape.size(), rb = b.shape.size();
  const int64_t m = a.shape[ra - (ta ? 1 : 2)], k = a.shape[ra - (ta ? 2 : 1)],
                n = b.shape[rb - (tb ? 2 : 1)];
  Dims shape =
      broadcast_shape(Dims(a.shape.begin(), a.shape.end() - 2), Dims(b.shape.begin(), b.shape.end() - 2));
  shape.push_back(m), shape.push_back(n);
  const auto offset = [](const ArrayOf<S>& x, const Dims& at, bool transposed, int64_t row, int64_t column) {
    const size_t rank = x.shape.size(), more = at.size() - rank;
    int64_t i = 0;
    for (size_t d = 0; d + 2 < rank; ++d) i = i * x.shape[d] + (x.shape[d] == 1 ? 0 : at[more + d]);
    i = i * x.shape[rank - 2] + (transposed ? column : row);
    return i * x.shape[rank - 1] + (transposed ? row : column);
  };
  const int64_t along_a = ta ? a.shape[ra - 1] : 1, along_b = tb ? 1 : b.shape[rb - 1];
  return {make<S>(a.dtype, shape, [&](const Dims& at) {
    S total(0);
    if (k == 0) return total;
    const S* x = &a.v[static_cast<size_t>(offset(a, at, ta, at[at.size() - 2], 0))];
    const S* y = &b.v[static_cast<size_t>(offset(b, at, tb, 0, at[at.size() - 1]))];
    for (int64_t i = 0; i < k; ++i) total = total + x[i * along_a] * y[i * along_b];
    return total;
  })};
}

Errors sum_bound(const BoundCall& c) {
  const Bounded& x = *c.in[0];
  const Errors ones(x.value.v.size(), 1);
  Errors roundings = run(c, {like(x.value, ones)});
  for (Real& n : roundings) n -= 1;
  return summed(c, run(c, {like(x.value, absolute(x.value))}), run(c, {like(x.value, x.error)}), roundings,
                false);
}
/// Whether the order of the factors decides a product: one order overflows on its way and another does
/// not, or small factors vanish before they meet an infinite one.
class ProductInAnyOrder {
 public:
  explicit ProductInAnyOrder(const BoundCall& c) : limits_(format(compute_type(c.out.dtype))) {
    const Bounded& x = *c.in[0];
    const size_t n = x.value.v.size();
    Errors above(n, 1), below(n, 1), zeros(n, 0), infinite(n, 0), nans(n, 0);
    for (size_t i = 0; i < n; ++i) {
      const Real size = std::fabs(x.value.v[i]), e = x.error[i];
      zeros[i] = size == 0, infinite[i] = std::isinf(size), nans[i] = std::isnan(size);
      if (std::isfinite(size)) above[i] = std::max<Real>(1, size + e);
      if (size > 0) below[i] = std::min<Real>(1, std::max<Real>(0, size - e));
    }
    const BoundCall count{*ir::find_op("sum"), c.attrs, c.in, c.out, c.c};
    const auto of = [&](const BoundCall& fold, Errors v) { return run(fold, {like(x.value, std::move(v))}); };
    growth_ = of(c, above), shrinking_ = of(c, below);
    zeros_ = of(count, zeros), infinite_ = of(count, infinite), nans_ = of(count, nans);
  }
  /// The largest partial product of the finite factors, in any order.
  Real growth(size_t i) const { return growth_[i]; }
  bool decides(size_t i, Real product) const {
    if (nans_[i] > 0 || (infinite_[i] > 0 && zeros_[i] > 0)) return false;  // NaN in any order
    const bool vanishes = shrinking_[i] < limits_.least();
    if (infinite_[i] > 0) return vanishes;
    const bool returns = shrinking_[i] < 1 && std::fabs(product) <= limits_.largest;
    return growth_[i] > limits_.largest && (zeros_[i] > 0 || vanishes || returns);
  }

 private:
  const FloatFormat& limits_;
  Errors growth_, shrinking_, zeros_, infinite_, nans_;
};

// The error of a product of n factors |x| + e: the operands' errors, gamma(n - 1), and for each partial
// product that is subnormal half a subnormal step times the factors that follow.
Errors prod_bound(const BoundCall& c) {
  const DType t = c.out.dtype;
  if (!is_float(t)) return none(c);
  const Bounded& x = *c.in[0];
  Errors sizes = absolute(x.value), ones(sizes.size(), 1);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] += x.error[i];
  const Errors whole = run(c, {like(x.value, absolute(x.value))}), most = run(c, {like(x.value, sizes)});
  const BoundCall count{*ir::find_op("sum"), c.attrs, c.in, c.out, c.c};
  const Errors factors = run(count, {like(x.value, ones)});
  const ProductInAnyOrder order(c);
  const auto& f = format(compute_type(t));
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) {
    const Real n = std::max<Real>(0, factors[i] - 1), carried = most[i] - whole[i];
    Real own = gamma(t, n) * most[i] + n * f.least() * order.growth(i);
    if (is_half(t)) own += rounding(t, most[i] + own, 0.5L);
    e.push_back(order.decides(i, c.out.v[i]) ? kOpen : carried + own);
  }
  return e;
}
// The extreme of a row changes by no more than the element that changes most.
Errors extreme_bound(const BoundCall& c) {
  const BoundCall largest{*ir::find_op("max"), c.attrs, c.in, c.out, c.c};
  Errors e = run(largest, {like(c.in[0]->value, c.in[0]->error)});
  for (Real& v : e) v = std::max<Real>(v, 0);  // -inf of an empty row
  return e;
}

constexpr Rule kFoldRules[] = {
    {"sum", sum<Real>, sum<Rational>,
     "n - 1 additions in any order: gamma(n - 1) sum|x|; halves round once more", 0.5L, sum_bound},
    {"prod", prod<Real>, prod<Rational>,
     "n - 1 products in any order: gamma(n - 1) prod|x|, and what underflows on the way; halves round once "
     "more",
     0.5L, prod_bound},
    {"max", extreme<Real, false>, extreme<Rational, false>, "exact; the largest of the errors", 0,
     extreme_bound},
    {"min", extreme<Real, true>, extreme<Rational, true>, "exact; the largest of the errors", 0,
     extreme_bound},
    {"cumsum", cumsum<Real>, cumsum<Rational>,
     "sums of n terms in any order: gamma(n - 1) sum|x|; halves round once more", 0.5L, sum_bound},
    {"matmul", matmul<Real>, matmul<Rational>,
     "k products and k - 1 additions in any order: gamma(k) sum|a||b|; halves round once more", 0.5L,
     sum_of_products},
};

}  // namespace

Rules fold_rules() { return kFoldRules; }

}  // namespace weft::conformance

#include <cmath>

#include "conformance/rules.h"

namespace weft::conformance {
namespace {

template <class S>
ArrayOf<S> folded(const CallAttrs& a, const ArrayOf<S>& x, S start, const std::function<S(S, S)>& step) {
  const Dims axes = a.dims("axes");
  Dims kept = x.shape, shape;
  for (size_t d = 0; d < kept.size(); ++d) {
    const bool fold = axes.empty() || std::find(axes.begin(), axes.end(), int64_t(d)) != axes.end();
    if (fold) kept[d] = 1;
    if (!fold || a.integer("keep")) shape.push_back(kept[d]);
  }
  ArrayOf<S> y{x.dtype, shape, std::vector<S>(static_cast<size_t>(count(kept)), start)};
  for (size_t i = 0; i < x.v.size(); ++i) {
    Dims at = coordinates(static_cast<int64_t>(i), x.shape);
    for (size_t d = 0; d < at.size(); ++d) at[d] = kept[d] == 1 ? 0 : at[d];
    S& total = y.v[position(at, kept)];
    total = step(total, x.v[i]);
  }
  return y;
}
template <class S>
Results<S> sum(const CallAttrs& a, Inputs<S> in) {
  const DType t = in[0]->dtype;
  return {folded<S>(a, *in[0], S(0), [t](S x, S y) { return arithmetic(t, x, y, std::plus<>()); })};
}
template <class S>
Results<S> max(const CallAttrs& a, Inputs<S> in) {
  if constexpr (std::is_same_v<S, Real>) {
    const DType t = in[0]->dtype;
    const Real start = is_float(t) ? -std::numeric_limits<Real>::infinity() : lowest(t);
    return {folded<S>(a, *in[0], start, [](Real m, Real v) {
      return std::isnan(m) || std::isnan(v) ? m + v : std::max(m, v);
    })};
  } else {
    if (in[0]->v.empty()) throw std::domain_error("no fraction");
    const S start = *std::min_element(in[0]->v.begin(), in[0]->v.end());
    return {folded<S>(a, *in[0], start, [](S m, S v) { return m < v ? v : m; })};
  }
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
  const auto element = [](const ArrayOf<S>& x, Dims at, bool transposed, int64_t row, int64_t column) {
    at[at.size() - 2] = transposed ? column : row, at[at.size() - 1] = transposed ? row : column;
    Dims own(at.end() - static_cast<int64_t>(x.shape.size()), at.end());
    for (size_t d = 0; d + 2 < own.size(); ++d) own[d] = x.shape[d] == 1 ? 0 : own[d];
    return x.v[position(own, x.shape)];
  };
  return {make<S>(a.dtype, shape, [&](const Dims& at) {
    S total(0);
    for (int64_t i = 0; i < k; ++i)
      total = total + element(a, at, ta, at[at.size() - 2], i) * element(b, at, tb, i, at[at.size() - 1]);
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
Errors max_bound(const BoundCall& c) {
  Errors e = run(c, {like(c.in[0]->value, c.in[0]->error)});
  for (Real& v : e) v = std::max<Real>(v, 0);  // of nothing: -inf
  return e;
}

constexpr Rule kRules[] = {
    {"sum", sum<Real>, sum<Rational>,
     "n - 1 additions in any order: gamma(n - 1) sum|x|; halves round once more", 0.5L, sum_bound},
    {"max", max<Real>, max<Rational>, "exact; the largest of the errors", 0, max_bound},
    {"matmul", matmul<Real>, matmul<Rational>,
     "k products and k - 1 additions in any order: gamma(k) sum|a||b|; halves round once more", 0.5L,
     sum_of_products},
};

}  // namespace

Rules fold_rules() { return kRules; }

}  // namespace weft::conformance

#include <cmath>
#include <numeric>

#include "conformance/rules.h"

namespace weft::conformance {
namespace {

bool is_nan(Real x) { return std::isnan(x); }
bool is_nan(const Rational&) { return false; }

/// f(places) for each row: the offsets of its elements along the axis.
template <class F>
void each_row(const Dims& shape, size_t axis, F f) {
  const int64_t n = count(shape);
  for (int64_t i = 0; i < n; ++i) {
    Dims at = coordinates(i, shape);
    if (at[axis] != 0) continue;
    std::vector<size_t> places;
    for (; at[axis] < shape[axis]; ++at[axis]) places.push_back(position(at, shape));
    f(places);
  }
}

/// Insertion sort: an element goes after all that do not belong after it.
template <class S>
Results<S> sort(const CallAttrs& a, Inputs<S> in) {
  const auto& x = *in[0];
  ArrayOf<S> values = x, indices{DType::i32, x.shape, std::vector<S>(x.v.size(), S(0))};
  const auto after = [&](const S& p, const S& q) {  // p belongs after q
    const S &large = a.integer("descending") ? q : p, &small = a.integer("descending") ? p : q;
    return is_nan(large) ? !is_nan(small) : small < large;
  };
  each_row(x.shape, static_cast<size_t>(a.integer("axis")), [&](const std::vector<size_t>& places) {
    std::vector<size_t> sorted;
    for (size_t i = 0; i < places.size(); ++i) {
      size_t at = sorted.size();
      while (at > 0 && after(x.v[places[sorted[at - 1]]], x.v[places[i]])) --at;
      sorted.insert(sorted.begin() + static_cast<int64_t>(at), i);
    }
    for (size_t i = 0; i < places.size(); ++i) {
      values.v[places[i]] = x.v[places[sorted[i]]];
      indices.v[places[i]] = S(static_cast<int64_t>(sorted[i]));
    }
  });
  return {values, indices};
}

// The k-th of sorted numbers changes by no more than the number that changes most.
Errors sort_bound(const BoundCall& c) {
  const Bounded& x = *c.in[0];
  Errors e(x.error.size());
  each_row(x.value.shape, static_cast<size_t>(CallAttrs(c.op, c.attrs).integer("axis")),
           [&](const std::vector<size_t>& places) {
             Real most = 0;
             for (const size_t p : places) most = std::max(most, x.error[p]);
             for (const size_t p : places) e[p] = most;
           });
  return e;
}
// Their positions are uncertain if any of the numbers is.
Errors indices_bound(const BoundCall& c) {
  Errors e = sort_bound(c);
  const auto axis = static_cast<size_t>(CallAttrs(c.op, c.attrs).integer("axis"));
  for (Real& v : e) v = v == 0 ? Real{0} : static_cast<Real>(c.out.shape[axis]);
  return e;
}

constexpr Rule kSortRules[] = {
    {"sort", sort<Real>, sort<Rational>, "exact; the largest error of the row", 0, sort_bound, true,
     indices_bound},
};

}  // namespace

Rules sort_rules() { return kSortRules; }

}  // namespace weft::conformance

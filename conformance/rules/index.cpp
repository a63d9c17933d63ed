#include "conformance/rules.h"

namespace weft::conformance {
namespace {

// gather: y[b..., m..., i..., r...] = x[b..., m..., index[b..., i...], r...]; m are the axes of x from batch
// to axis.
struct Picked {
  Dims x, index;  // coordinates in x (its axis still open) and in index
};
Picked picked(const Dims& at, size_t axis, size_t batch, size_t index_rank) {
  Picked p;
  const size_t n = index_rank - batch;
  p.x.assign(at.begin(), at.begin() + static_cast<int64_t>(axis));
  p.x.push_back(0);
  p.x.insert(p.x.end(), at.begin() + static_cast<int64_t>(axis + n), at.end());
  p.index.assign(at.begin(), at.begin() + static_cast<int64_t>(batch));
  p.index.insert(p.index.end(), at.begin() + static_cast<int64_t>(axis),
                 at.begin() + static_cast<int64_t>(axis + n));
  return p;
}
template <class S>
Results<S> gather(const CallAttrs& a, Inputs<S> in) {
  const auto &x = *in[0], &index = *in[1];
  const auto axis = static_cast<size_t>(a.integer("axis")), batch = static_cast<size_t>(a.integer("batch"));
  Dims shape(x.shape.begin(), x.shape.begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), index.shape.begin() + static_cast<int64_t>(batch), index.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<int64_t>(axis) + 1, x.shape.end());
  return {make<S>(x.dtype, shape, [&](const Dims& at) {
    Picked p = picked(at, axis, batch, index.shape.size());
    p.x[axis] = static_cast<int64_t>(to_real(index.v[position(p.index, index.shape)]));
    return x.v[position(p.x, x.shape)];
  })};
}
template <class S, class F>
Results<S> scattered(const CallAttrs& a, Inputs<S> in, F write) {
  const auto &index = *in[1], &updates = *in[2];
  const auto axis = static_cast<size_t>(a.integer("axis")), batch = static_cast<size_t>(a.integer("batch"));
  ArrayOf<S> y = *in[0];
  for (size_t i = 0; i < updates.v.size(); ++i) {
    Picked p = picked(coordinates(static_cast<int64_t>(i), updates.shape), axis, batch, index.shape.size());
    p.x[axis] = static_cast<int64_t>(to_real(index.v[position(p.index, index.shape)]));
    S& there = y.v[position(p.x, y.shape)];
    there = write(there, updates.v[i]);
  }
  return {y};
}
template <class S>
Results<S> scatter(const CallAttrs& a, Inputs<S> in) {
  return scattered<S>(a, in, [](const S&, const S& update) { return update; });
}
template <class S>
Results<S> scatter_add(const CallAttrs& a, Inputs<S> in) {
  const DType t = in[0]->dtype;
  return scattered<S>(a, in, [t](S total, S update) { return arithmetic(t, total, update, std::plus<>()); });
}

template <class S>
Results<S> random_bits(const CallAttrs& a, Inputs<S> in) {
  const auto key = static_cast<uint64_t>(whole(in[0]->v[0])),
             counter = static_cast<uint64_t>(whole(in[0]->v[1]));
  ArrayOf<S> bits{DType::u32, a.dims("shape"), {}}, next = *in[0];
  const int64_t n = count(bits.shape);
  for (int64_t i = 0; i < n; ++i)
    bits.v.push_back(philox(key, counter + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)]);
  next.v[1] = whole(wrap_to(DType::u64, whole(next.v[1]) + (n + 3) / 4));
  return {bits, next};
}

Errors scatter_bound(const BoundCall& c) {
  const auto &x = *c.in[0], &index = *c.in[1], &u = *c.in[2];
  return run(c, {like(x.value, x.error), index.value, like(u.value, u.error)});
}
Errors scatter_add_bound(const BoundCall& c) {
  const auto &x = *c.in[0], &index = *c.in[1], &u = *c.in[2];
  const Errors none(x.value.v.size(), 0), ones(u.value.v.size(), 1);
  return summed(c, run(c, {like(x.value, absolute(x.value)), index.value, like(u.value, absolute(u.value))}),
                run(c, {like(x.value, x.error), index.value, like(u.value, u.error)}),
                run(c, {like(x.value, none), index.value, like(u.value, ones)}), false);
}
constexpr Rule kIndexRules[] = {
    {"gather", gather<Real>, gather<Rational>, "exact: moves", 0, moved, true},
    {"scatter", scatter<Real>, scatter<Rational>, "exact: moves", 0, scatter_bound, true},
    {"scatter_add", scatter_add<Real>, scatter_add<Rational>,
     "m additions to an element: gamma(m) (|x| + sum|u|)", 0.5L, scatter_add_bound},
    {"random_bits", random_bits<Real>, random_bits<Rational>, "exact: integers", 0, none},
};

}  // namespace

Rules index_rules() { return kIndexRules; }

}  // namespace weft::conformance

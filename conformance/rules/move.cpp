#include "conformance/rules.h"

namespace weft::conformance {
namespace {

template <class S>
Results<S> reshape(const CallAttrs& a, Inputs<S> in) {
  return {{in[0]->dtype, a.dims("shape"), in[0]->v}};
}
template <class S>
Results<S> broadcast_op(const CallAttrs& a, Inputs<S> in) {
  return {broadcast<S>(*in[0], a.dims("shape"))};
}
template <class S>
Results<S> slice(const CallAttrs& a, Inputs<S> in) {
  const auto axis = static_cast<size_t>(a.integer("axis"));
  const int64_t start = a.dims("start")[0], stop = a.dims("stop")[0], step = a.integer("step");
  Dims shape = in[0]->shape;
  shape[axis] = 0;
  for (int64_t i = start; i < stop; i += step) ++shape[axis];
  return {make<S>(in[0]->dtype, shape, [&](Dims at) {
    at[axis] = start + at[axis] * step;
    return in[0]->v[position(at, in[0]->shape)];
  })};
}
template <class S>
Results<S> pad(const CallAttrs& a, Inputs<S> in) {
  const auto axis = static_cast<size_t>(a.integer("axis"));
  const int64_t before = a.dims("before")[0], size = in[0]->shape[axis];
  const Real rounded = round_to(in[0]->dtype, a.real("value"));
  Dims shape = in[0]->shape;
  shape[axis] += before + a.dims("after")[0];
  return {make<S>(in[0]->dtype, shape, [&](Dims at) {
    at[axis] -= before;
    if (at[axis] >= 0 && at[axis] < size) return in[0]->v[position(at, in[0]->shape)];
    if constexpr (std::is_same_v<S, Real>)
      return rounded;
    else
      return Rational::of(rounded);
  })};
}

Errors padded(const BoundCall& c) {
  std::vector<AttrValue> attrs(c.attrs.begin(), c.attrs.end());
  for (size_t i = 0; i < attrs.size(); ++i)
    if (std::string_view(c.op.attrs[i].name) == "value") attrs[i] = 0.0;
  return moved({c.op, attrs, c.in, c.out, c.c});
}
constexpr Rule kRules[] = {
    {"broadcast", broadcast_op<Real>, broadcast_op<Rational>, "exact: moves", 0, moved, true},
    {"reshape", reshape<Real>, reshape<Rational>, "exact: moves", 0, moved, true},
    {"slice", slice<Real>, slice<Rational>, "exact: moves", 0, moved, true},
    {"pad", pad<Real>, pad<Rational>, "exact: moves; the value is rounded to the dtype", 0, padded, true},
};

}  // namespace

Rules move_rules() { return kRules; }

}  // namespace weft::conformance

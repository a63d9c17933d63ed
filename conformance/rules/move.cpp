#include <cmath>

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

template <class S>
Results<S> permute(const CallAttrs& a, Inputs<S> in) {
  const auto& x = *in[0];
  Dims axes = a.dims("axes"), shape;
  if (axes.empty())
    for (size_t d = x.shape.size(); d-- > 0;) axes.push_back(static_cast<int64_t>(d));
  for (const int64_t axis : axes) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return {make<S>(x.dtype, shape, [&](const Dims& at) {
    Dims from(at.size());
    for (size_t d = 0; d < at.size(); ++d) from[static_cast<size_t>(axes[d])] = at[d];
    return x.v[position(from, x.shape)];
  })};
}
template <class S>
Results<S> concat(const CallAttrs& a, Inputs<S> in) {
  const auto axis = static_cast<size_t>(a.integer("axis"));
  Dims shape = in[0]->shape;
  for (size_t k = 1; k < in.size(); ++k) shape[axis] += in[k]->shape[axis];
  return {make<S>(in[0]->dtype, shape, [&](Dims at) {
    size_t k = 0;
    while (at[axis] >= in[k]->shape[axis]) at[axis] -= in[k++]->shape[axis];
    return in[k]->v[position(at, in[k]->shape)];
  })};
}
template <class S>
Results<S> iota(const CallAttrs& a, Inputs<S>) {
  const DType t = a.dtype("dtype");
  return {make<S>(t, {a.dims("size")[0]}, [](const Dims& at) { return S(at[0]); })};
}
// Errors move with the elements of every operand.
Errors joined(const BoundCall& c) {
  std::vector<Array> in;
  for (const auto* x : c.in) in.push_back(like(x->value, x->error));
  return run(c, std::move(in));
}

Errors counted(const BoundCall& c) {
  Errors e;
  for (const Real v : c.out.v) e.push_back(std::fabs(round_to(c.out.dtype, v) - v));
  return e;
}

Errors padded(const BoundCall& c) {
  std::vector<AttrValue> attrs(c.attrs.begin(), c.attrs.end());
  for (size_t i = 0; i < attrs.size(); ++i)
    if (std::string_view(c.op.attrs[i].name) == "value") attrs[i] = 0.0;
  return moved({c.op, attrs, c.in, c.out, c.c});
}
constexpr Rule kMoveRules[] = {
    {"broadcast", broadcast_op<Real>, broadcast_op<Rational>, "exact: moves", 0, moved, true},
    {"reshape", reshape<Real>, reshape<Rational>, "exact: moves", 0, moved, true},
    {"slice", slice<Real>, slice<Rational>, "exact: moves", 0, moved, true},
    {"permute", permute<Real>, permute<Rational>, "exact: moves", 0, moved, true},
    {"concat", concat<Real>, concat<Rational>, "exact: moves", 0, joined, true},
    {"iota", iota<Real>, iota<Rational>,
     "exact: correctly rounded, so its rounding when something else reads it", 0, counted},
    {"pad", pad<Real>, pad<Rational>, "exact: moves; the value is rounded to the dtype", 0, padded, true},
};

}  // namespace

Rules move_rules() { return kMoveRules; }

}  // namespace weft::conformance

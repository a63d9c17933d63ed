#include "conformance/oracle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>

namespace weft::conformance {

const AttrValue& CallAttrs::at(std::string_view name) const {
  for (size_t i = 0; i < op_.attrs.size(); ++i)
    if (name == op_.attrs[i].name) return view_[i];
  throw std::out_of_range(std::string(name));
}

Dims CallAttrs::dims(std::string_view name) const {
  Dims out;
  for (const Dim d : std::get<Shape>(at(name))) out.push_back(d.value());
  return out;
}

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint64_t, 4> c = {counter_low & 0xffffffff, counter_low >> 32, counter_high & 0xffffffff,
                               counter_high >> 32};
  uint64_t k0 = key & 0xffffffff, k1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {(p1 >> 32) ^ c[1] ^ k0, p1 & 0xffffffff, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xffffffff};
    k0 = (k0 + 0x9E3779B9ull) & 0xffffffff, k1 = (k1 + 0xBB67AE85ull) & 0xffffffff;
  }
  return {uint32_t(c[0]), uint32_t(c[1]), uint32_t(c[2]), uint32_t(c[3])};
}

namespace {

Dims coordinates(int64_t i, const Dims& shape) {
  Dims at(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d]) at[d] = i % shape[d];
  return at;
}
size_t position(const Dims& at, const Dims& shape) {
  int64_t i = 0;
  for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + at[d];
  return static_cast<size_t>(i);
}
/// Where the element of a broadcast operand lies that stands at `at` of the result.
size_t broadcast_position(const Dims& at, const Dims& shape) {
  Dims own;
  for (size_t d = 0; d < shape.size(); ++d)
    own.push_back(shape[d] == 1 ? 0 : at[at.size() - shape.size() + d]);
  return position(own, shape);
}
Dims broadcast_shape(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

template <class S>
using Inputs = std::span<const ArrayOf<S>* const>;
template <class S>
using Results = std::vector<ArrayOf<S>>;

/// y[at] = f(at) over a shape.
template <class S, class F>
ArrayOf<S> make(DType t, Dims shape, F f) {
  ArrayOf<S> y{t, std::move(shape), {}};
  const int64_t n = count(y.shape);
  for (int64_t i = 0; i < n; ++i) y.v.push_back(f(coordinates(i, y.shape)));
  return y;
}

__int128 whole(Real x) { return static_cast<__int128>(x); }
Real to_real(Real x) { return x; }
Real to_real(const Rational& x) { return x.real(); }

template <class S>
S divide(DType t, S a, S b) {
  if constexpr (std::is_same_v<S, Real>)
    if (!is_float(t)) return b == 0 ? Real{0} : wrap_to(t, whole(a) / whole(b));
  return a / b;
}
template <class F>
Real integer_or_real(DType t, Real a, Real b, F f) {
  return is_float(t) ? static_cast<Real>(f(a, b)) : wrap_to(t, f(whole(a), whole(b)));
}
template <class S, class F>
S arithmetic(DType t, const S& a, const S& b, F f) {
  if constexpr (std::is_same_v<S, Real>)
    return integer_or_real(t, a, b, f);
  else
    return f(a, b);
}

template <class S, class F>
Results<S> binary(Inputs<S> in, DType out, F f) {
  const auto &a = *in[0], &b = *in[1];
  return {make<S>(out, broadcast_shape(a.shape, b.shape), [&](const Dims& at) {
    return f(a.dtype, a.v[broadcast_position(at, a.shape)], b.v[broadcast_position(at, b.shape)]);
  })};
}
template <class S>
Results<S> add(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, in[0]->dtype, [](DType t, S a, S b) { return arithmetic(t, a, b, std::plus<>()); });
}
template <class S>
Results<S> sub(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, in[0]->dtype, [](DType t, S a, S b) { return arithmetic(t, a, b, std::minus<>()); });
}
template <class S>
Results<S> mul(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, in[0]->dtype, [](DType t, S a, S b) {
    if constexpr (std::is_same_v<S, Real>)  // u64 products need 128 unsigned bits: only their low half counts
      if (!is_float(t))
        return wrap_to(t, whole(wrap_to(DType::i64, whole(a))) * whole(wrap_to(DType::i64, whole(b))));
    return S(a * b);
  });
}
template <class S>
Results<S> div(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, in[0]->dtype, [](DType t, S a, S b) { return divide<S>(t, a, b); });
}
template <class S>
Results<S> less(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, DType::boolean, [](DType, S a, S b) { return S(a < b ? 1 : 0); });
}
template <class S>
Results<S> equal(const CallAttrs&, Inputs<S> in) {
  return binary<S>(in, DType::boolean, [](DType, S a, S b) { return S(a == b ? 1 : 0); });
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

template <class S, Real (*f)(Real)>
Results<S> unary(const CallAttrs&, Inputs<S> in) {
  ArrayOf<S> y = *in[0];
  if constexpr (std::is_same_v<S, Real>)
    for (S& v : y.v) v = f(v);
  else
    throw std::domain_error("no fraction");
  return {y};
}
Real exp_of(Real x) { return std::exp(x); }
Real log_of(Real x) { return std::log(x); }
Real sqrt_of(Real x) { return std::sqrt(x); }

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
template <class S>
Results<S> scatter_add(const CallAttrs& a, Inputs<S> in) {
  const auto &index = *in[1], &updates = *in[2];
  const auto axis = static_cast<size_t>(a.integer("axis")), batch = static_cast<size_t>(a.integer("batch"));
  ArrayOf<S> y = *in[0];
  for (size_t i = 0; i < updates.v.size(); ++i) {
    Picked p = picked(coordinates(static_cast<int64_t>(i), updates.shape), axis, batch, index.shape.size());
    p.x[axis] = static_cast<int64_t>(to_real(index.v[position(p.index, index.shape)]));
    S& total = y.v[position(p.x, y.shape)];
    total = arithmetic(y.dtype, total, updates.v[i], std::plus<>());
  }
  return {y};
}

// Integer to integer wraps; everything else is one conversion, whose rounding to a float is left to the
// caller.
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
    return {{t, shape, std::vector<S>(n, Rational::of(value))}};
}
template <class S>
Results<S> random_bits(const CallAttrs& a, Inputs<S> in) {
  if constexpr (std::is_same_v<S, Real>) {
    const auto key = static_cast<uint64_t>(in[0]->v[0]), counter = static_cast<uint64_t>(in[0]->v[1]);
    ArrayOf<S> bits{DType::u32, a.dims("shape"), {}}, next = *in[0];
    const int64_t n = count(bits.shape);
    for (int64_t i = 0; i < n; ++i)
      bits.v.push_back(philox(key, counter + static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)]);
    next.v[1] = wrap_to(DType::u64, whole(next.v[1]) + (n + 3) / 4);
    return {bits, next};
  } else {
    throw std::domain_error("no fraction");
  }
}

template <class S>
using Rule = Results<S> (*)(const CallAttrs&, Inputs<S>);
template <class S>
const std::map<std::string_view, Rule<S>>& rules() {
  static const std::map<std::string_view, Rule<S>> all = {{"add", add<S>},
                                                          {"sub", sub<S>},
                                                          {"mul", mul<S>},
                                                          {"div", div<S>},
                                                          {"less", less<S>},
                                                          {"equal", equal<S>},
                                                          {"where", where<S>},
                                                          {"exp", unary<S, exp_of>},
                                                          {"log", unary<S, log_of>},
                                                          {"sqrt", unary<S, sqrt_of>},
                                                          {"sum", sum<S>},
                                                          {"max", max<S>},
                                                          {"matmul", matmul<S>},
                                                          {"reshape", reshape<S>},
                                                          {"broadcast", broadcast_op<S>},
                                                          {"slice", slice<S>},
                                                          {"pad", pad<S>},
                                                          {"gather", gather<S>},
                                                          {"scatter_add", scatter_add<S>},
                                                          {"cast", cast<S>},
                                                          {"full", full<S>},
                                                          {"random_bits", random_bits<S>}};
  return all;
}

}  // namespace

template <class S>
ArrayOf<S> broadcast(const ArrayOf<S>& x, const Dims& shape) {
  return make<S>(x.dtype, shape, [&](const Dims& at) { return x.v[broadcast_position(at, x.shape)]; });
}

template <class S>
std::vector<ArrayOf<S>> evaluate(const ir::OpDef& op, ir::AttrView attrs, Inputs<S> inputs) {
  const auto rule = rules<S>().find(op.name);
  if (rule == rules<S>().end()) throw std::out_of_range(std::string("the oracle does not know ") + op.name);
  return rule->second(CallAttrs(op, attrs), inputs);
}

template ArrayOf<Real> broadcast(const ArrayOf<Real>&, const Dims&);
template std::vector<ArrayOf<Real>> evaluate(const ir::OpDef&, ir::AttrView, Inputs<Real>);
template std::vector<ArrayOf<Rational>> evaluate(const ir::OpDef&, ir::AttrView, Inputs<Rational>);

}  // namespace weft::conformance

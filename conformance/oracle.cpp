#include "conformance/oracle.h"

#include <stdexcept>

#include "conformance/rules.h"

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
/// The offset in a broadcast operand of the element for index `at` of the result.
size_t broadcast_position(const Dims& at, const Dims& shape) {
  int64_t i = 0;
  const size_t more = at.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + (shape[d] == 1 ? 0 : at[more + d]);
  return static_cast<size_t>(i);
}
Walk::Walk(const Dims& whole, const Dims& operand) : whole_(whole), at_(whole.size()), step_(whole.size()) {
  const size_t more = whole.size() - operand.size();
  int64_t step = 1;
  for (size_t d = operand.size(); d-- > 0; step *= operand[d]) step_[more + d] = operand[d] == 1 ? 0 : step;
}
Dims broadcast_shape(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    out[out.size() - 1 - i] = da == 1 ? db : da;
  }
  return out;
}

const Rule* find_rule(std::string_view op) {
  for (const Rules file : rule_files())
    for (const Rule& r : file)
      if (r.op == op) return &r;
  return nullptr;
}

template <class S>
ArrayOf<S> broadcast(const ArrayOf<S>& x, const Dims& shape) {
  ArrayOf<S> y{x.dtype, shape, {}};
  const auto n = static_cast<size_t>(count(shape));
  y.v.reserve(n);
  Walk from(shape, x.shape);
  for (size_t i = 0; i < n; ++i, from.next()) y.v.push_back(x.v[from.position()]);
  return y;
}

template <class S>
std::vector<ArrayOf<S>> evaluate(const ir::OpDef& op, ir::AttrView attrs, Inputs<S> inputs) {
  const Rule* rule = find_rule(op.name);
  if (!rule) throw std::out_of_range(std::string("the oracle does not know ") + op.name);
  if constexpr (std::is_same_v<S, Real>) {
    return rule->truth(CallAttrs(op, attrs), inputs);
  } else {
    return rule->exact(CallAttrs(op, attrs), inputs);
  }
}

template ArrayOf<Real> broadcast(const ArrayOf<Real>&, const Dims&);
template ArrayOf<Rational> broadcast(const ArrayOf<Rational>&, const Dims&);
template std::vector<ArrayOf<Real>> evaluate(const ir::OpDef&, ir::AttrView, Inputs<Real>);
template std::vector<ArrayOf<Rational>> evaluate(const ir::OpDef&, ir::AttrView, Inputs<Rational>);

}  // namespace weft::conformance

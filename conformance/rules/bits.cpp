#include <cmath>

#include "conformance/rules.h"

// Integers and bool as bits. Values are signed 128-bit integers whose low bits are those of the dtype.
namespace weft::conformance {
namespace {

template <class S, class F>
Results<S> bitwise(Inputs<S> in, F f) {
  return paired<S>(in, in[0]->dtype, [&](DType t, const S& a, const S& b) {
    const __int128 bits = f(t, whole(a), whole(b));
    if constexpr (std::is_same_v<S, Real>)
      return wrap_to(t, bits);
    else
      return S(whole(wrap_to(t, bits)));
  });
}
template <class S>
Results<S> bit_and(const CallAttrs&, Inputs<S> in) {
  return bitwise<S>(in, [](DType, __int128 a, __int128 b) { return a & b; });
}
template <class S>
Results<S> bit_or(const CallAttrs&, Inputs<S> in) {
  return bitwise<S>(in, [](DType, __int128 a, __int128 b) { return a | b; });
}
template <class S>
Results<S> bit_xor(const CallAttrs&, Inputs<S> in) {
  return bitwise<S>(in, [](DType, __int128 a, __int128 b) { return a ^ b; });
}
bool inside(DType t, __int128 amount) { return amount >= 0 && amount < __int128(8 * byte_size(t)); }
template <class S>
Results<S> shift_left(const CallAttrs&, Inputs<S> in) {
  return bitwise<S>(in, [](DType t, __int128 a, __int128 n) {
    return inside(t, n) ? static_cast<__int128>(static_cast<unsigned __int128>(a) << n) : 0;
  });
}
template <class S>
Results<S> shift_right(const CallAttrs&, Inputs<S> in) {
  return bitwise<S>(in, [](DType t, __int128 a, __int128 n) { return a >> (inside(t, n) ? n : 127); });
}

// An uncertain bool may not matter; an uncertain integer may change every bit.
Errors bits_bound(const BoundCall& c) {
  const bool is_bool = c.out.dtype == DType::boolean;
  return paired_errors(c, [&](Real, Real ea, Real, Real eb, Real) {
    return ea == 0 && eb == 0 ? Real{0} : is_bool ? Real{1} : kInf;
  });
}

constexpr Rule kBitsRules[] = {
    {"bit_and", bit_and<Real>, bit_and<Rational>, "exact; unsure where an operand is", 0, bits_bound},
    {"bit_or", bit_or<Real>, bit_or<Rational>, "exact; unsure where an operand is", 0, bits_bound},
    {"bit_xor", bit_xor<Real>, bit_xor<Rational>, "exact; unsure where an operand is", 0, bits_bound},
    {"shift_left", shift_left<Real>, shift_left<Rational>, "exact; unsure where an operand is", 0,
     bits_bound},
    {"shift_right", shift_right<Real>, shift_right<Rational>, "exact; unsure where an operand is", 0,
     bits_bound},
};

}  // namespace

Rules bits_rules() { return kBitsRules; }

}  // namespace weft::conformance

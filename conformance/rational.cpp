#include "conformance/rational.h"

#include <cmath>
#include <stdexcept>

namespace weft::conformance {
namespace {

__int128 magnitude(__int128 x) { return x < 0 ? -x : x; }
__int128 gcd(__int128 a, __int128 b) {
  while (b != 0) {
    const __int128 r = a % b;
    a = b, b = r;
  }
  return magnitude(a);
}
__int128 times(__int128 a, __int128 b) {
  __int128 out;
  if (__builtin_mul_overflow(a, b, &out)) throw std::overflow_error("a fraction of more than 128 bits");
  return out;
}
__int128 plus(__int128 a, __int128 b) {
  __int128 out;
  if (__builtin_add_overflow(a, b, &out)) throw std::overflow_error("a fraction of more than 128 bits");
  return out;
}

}  // namespace

Rational::Rational(__int128 numerator, __int128 denominator) : n_(numerator), d_(denominator) {
  if (n_ == 0 && d_ == 0) throw std::domain_error("zero over zero");
  if (d_ < 0) n_ = -n_, d_ = -d_;
  const __int128 common = gcd(n_, d_);
  if (common > 1) n_ /= common, d_ /= common;
}

Rational Rational::of(Real x) {
  if (std::isinf(x)) return {x < 0 ? -1 : 1, 0};
  int shift = 0;
  while (x != std::trunc(x) && shift < 60) x *= 2, ++shift;
  if (x != std::trunc(x) || std::fabs(x) > 0x1p62L) throw std::domain_error("not a small fraction");
  return {static_cast<__int128>(x), static_cast<__int128>(1) << shift};
}

Rational operator+(Rational a, Rational b) {
  return {plus(times(a.n_, b.d_), times(b.n_, a.d_)), times(a.d_, b.d_)};
}
Rational operator-(Rational a, Rational b) { return a + Rational(-b.n_, b.d_); }
Rational operator*(Rational a, Rational b) { return {times(a.n_, b.n_), times(a.d_, b.d_)}; }
Rational operator/(Rational a, Rational b) {
  if (b.n_ == 0) throw std::domain_error("a fraction over zero, whose sign is not known");
  const __int128 sign = b.n_ < 0 ? -1 : 1;
  return {times(sign * a.n_, b.d_), times(a.d_, magnitude(b.n_))};
}
Rational floor(Rational x) {
  if (x.d_ == 0) return x;
  const __int128 toward_zero = x.n_ / x.d_;
  return toward_zero - (x.n_ % x.d_ < 0 ? 1 : 0);
}
Rational trunc(Rational x) { return x.d_ == 0 ? x : Rational(x.n_ / x.d_); }
__int128 whole(Rational x) {
  if (x.d_ != 1) throw std::domain_error("not a whole number");
  return x.n_;
}
// In lowest terms a fraction is a square if both of its numbers are.
Rational sqrt(Rational x) {
  const auto root = [](__int128 n) {
    const auto r = static_cast<__int128>(std::sqrt(static_cast<Real>(magnitude(n))));
    if (n < 0 || times(r, r) != n) throw std::domain_error("no square of a fraction");
    return r;
  };
  return {root(x.n_), root(x.d_)};
}
bool operator<(Rational a, Rational b) {
  if (a.d_ == 0 && b.d_ == 0) return a.n_ < b.n_;
  return times(a.n_, b.d_) < times(b.n_, a.d_);
}

// Scaled so that the quotient has 61 to 63 bits, with a sticky bit for the rest, so rounding it to 53 bits or
// fewer rounds the fraction itself.
Real Rational::real() const {
  __int128 n = magnitude(n_), d = d_;
  if (n == 0) return 0;
  if (d == 0) return n_ < 0 ? -kInf : kInf;
  int exponent = 0;
  const auto bits = [](__int128 x) {
    int b = 0;
    for (; x != 0; x >>= 1) ++b;
    return b;
  };
  while (bits(n) < 126 && bits(n) - bits(d) < 62) n <<= 1, --exponent;
  while (bits(n) - bits(d) < 62) d >>= 1, --exponent;  // only for d above 2^64, which small cases do not have
  const __int128 q = n / d;
  const auto sticky = static_cast<Real>((q << 1) | (n % d != 0 ? 1 : 0));
  return std::ldexp(n_ < 0 ? -sticky : sticky, exponent - 1);
}

}  // namespace weft::conformance

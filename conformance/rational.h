#pragma once
#include <cstdint>

#include "conformance/numbers.h"

namespace weft::conformance {

/// An exact fraction, or infinity. Meant for small numbers: throws if 128 bits do not hold a result, and
/// std::domain_error for undefined ones (1 / 0, inf - inf).
class Rational {
 public:
  Rational() = default;
  Rational(__int128 numerator, __int128 denominator = 1);  // NOLINT: implicit on purpose
  /// A double with a small exponent, or an infinite one, exactly.
  static Rational of(Real x);

  friend Rational operator+(Rational a, Rational b);
  friend Rational operator-(Rational a, Rational b);
  friend Rational operator*(Rational a, Rational b);
  friend Rational operator/(Rational a, Rational b);
  friend bool operator<(Rational a, Rational b);
  friend Rational floor(Rational x);
  friend Rational trunc(Rational x);  ///< toward zero
  friend bool operator==(Rational a, Rational b) = default;
  /// The value of an integer; std::domain_error for others.
  friend __int128 whole(Rational x);
  /// The root of a fraction's square; std::domain_error for others.
  friend Rational sqrt(Rational x);

  /// May be rounded again: 62 bits and a sticky bit.
  Real real() const;

 private:
  __int128 n_ = 0, d_ = 1;  // lowest terms, d_ > 0; infinity is 1 / 0
};

}  // namespace weft::conformance

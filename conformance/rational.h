#pragma once
#include <cstdint>

#include "conformance/numbers.h"

namespace weft::conformance {

/// An exact fraction. Meant for small numbers: it says so when 128 bits do not hold a result.
class Rational {
 public:
  Rational() = default;
  Rational(__int128 numerator, __int128 denominator = 1);  // NOLINT: implicit on purpose
  /// A double with a small exponent, exactly.
  static Rational of(Real x);

  friend Rational operator+(Rational a, Rational b);
  friend Rational operator-(Rational a, Rational b);
  friend Rational operator*(Rational a, Rational b);
  friend Rational operator/(Rational a, Rational b);
  friend bool operator<(Rational a, Rational b);
  friend Rational floor(Rational x);
  friend Rational trunc(Rational x);  ///< toward zero
  friend bool operator==(Rational a, Rational b) = default;

  /// Good enough to be rounded again: 62 bits and a sticky one.
  Real real() const;

 private:
  __int128 n_ = 0, d_ = 1;  // lowest terms, d_ > 0
};

}  // namespace weft::conformance

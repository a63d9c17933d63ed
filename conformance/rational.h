#pragma once
#include <cstdint>

#include "conformance/numbers.h"

namespace weft::conformance {

/// An exact fraction, or infinity. Meant for small numbers: it says so when 128 bits do not hold a result,
/// and what has none (1 / 0, inf - inf) is a std::domain_error.
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
  /// A whole number's value; std::domain_error for any other.
  friend __int128 whole(Rational x);
  /// The root of a square of a fraction; std::domain_error for any other.
  friend Rational sqrt(Rational x);

  /// Good enough to be rounded again: 62 bits and a sticky one.
  Real real() const;

 private:
  __int128 n_ = 0, d_ = 1;  // lowest terms, d_ > 0; infinity is 1 / 0
};

}  // namespace weft::conformance

#pragma once
#include <cstddef>
#include <span>

#include "conformance/real.h"
#include "weft/tensor.h"

// Elements as the oracle sees them: written anew, so that an error in include/weft/shared cannot hide here.
namespace weft::conformance {

/// A host array over any scalar: Real for truth, Rational for exact arithmetic.
template <class S>
struct ArrayOf {
  DType dtype = DType::f32;
  Dims shape;
  std::vector<S> v;
};
using Array = ArrayOf<Real>;

inline TensorType type_of(const Array& a) { return {a.dtype, to_shape(a.shape)}; }

/// The format of a float dtype: explicit mantissa bits, the exponent of the least normal number, and the
/// largest number.
struct FloatFormat {
  int mantissa = 0, least_exponent = 0, exponent_bits = 0;
  Real largest = 0;
  bool infinity = true;  // false: overflow becomes NaN, as in f8e4m3

  Real eps() const;    ///< distance from 1 to the next larger number
  Real least() const;  ///< the least subnormal
  Real least_normal() const;
  Real spacing(Real x) const;  ///< distance of neighbours at x: 2^spacing_exponent
  int spacing_exponent(Real x) const;
};
const FloatFormat& format(DType t);

/// Floats: the nearest value, ties to even, overflow as the format says. Integers: as float to integer
/// converts, truncated and saturated, NaN to 0.
Real round_to(DType t, Real x);
/// An integer of any size, modulo the width of an integer dtype.
Real wrap_to(DType t, __int128 x);
/// Largest and least value of an integer dtype.
Real highest(DType t);
Real lowest(DType t);

Array decode(DType t, const Dims& shape, std::span<const std::byte> bytes);
std::vector<std::byte> encode(const Array& a);
Tensor to_tensor(const Array& a, const std::string& backend);
Array from_tensor(const Tensor& t);

/// Reproducible numbers on every machine: splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double uniform();  ///< in [0, 1)
  double normal();

 private:
  uint64_t state_;
};

}  // namespace weft::conformance

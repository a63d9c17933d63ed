#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::codegen {

/// `x` rounded to nearest even as a narrow float: `mantissa` explicit bits, exponents in [min_exponent,
/// max_exponent], gradual underflow, overflow to infinity.
inline double round_to(double x, int mantissa, int min_exponent, int max_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 1, min_exponent) - mantissa;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  return std::abs(rounded) >= std::ldexp(1.0, max_exponent + 1) ? std::copysign(INFINITY, x) : rounded;
}
inline double round_f16(double x) { return round_to(x, 10, -14, 15); }
inline double round_bf16(double x) { return round_to(x, 7, -126, 127); }
/// Has no infinity: what is too large is NaN.
inline double round_e4m3(double x) {
  const double rounded = round_to(x, 3, -6, 8);
  return std::abs(rounded) > 448 ? NAN : rounded;
}
inline double round_e5m2(double x) { return round_to(x, 2, -14, 15); }

inline double from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}
inline uint16_t to_f16(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return sign | 0x7e00;
  x = std::abs(round_f16(x));
  if (std::isinf(x)) return sign | 0x7c00;
  if (x < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(x, 24));
  int exponent;
  std::frexp(x, &exponent);
  return sign | static_cast<uint16_t>((exponent + 14) << 10 |
                                      (static_cast<int>(std::ldexp(x, 11 - exponent)) & 1023));
}
inline double from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t to_bf16(double x) {
  if (std::isnan(x)) return 0x7fc0;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(round_bf16(x))) >> 16);
}

inline double from_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double sign = bits >> 7 ? -1.0 : 1.0;
  if ((bits & 127) == 127) return NAN;
  return sign * (exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9));
}
inline uint8_t to_e4m3(double x) {
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  x = std::abs(round_e4m3(x));
  if (std::isnan(x)) return sign | 0x7f;
  if (x < std::ldexp(1.0, -6)) return sign | static_cast<uint8_t>(std::ldexp(x, 9));
  int exponent;
  std::frexp(x, &exponent);
  return sign |
         static_cast<uint8_t>((exponent + 6) << 3 | (static_cast<int>(std::ldexp(x, 4 - exponent)) & 7));
}
/// The upper half of an f16.
inline double from_e5m2(uint8_t bits) { return from_f16(static_cast<uint16_t>(bits << 8)); }
inline uint8_t to_e5m2(double x) { return static_cast<uint8_t>(to_f16(round_e5m2(x)) >> 8); }

/// The nearest integer toward zero, saturated; NaN gives 0.
template <class I>
I saturate(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (x >= std::ldexp(1.0, std::numeric_limits<I>::digits)) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}

/// One block of Philox4x32-10 (Salmon et al., SC'11): counter words (low, high, 0, 0), key words (low, high).
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter) {
  uint32_t c[4] = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0,
                   n2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[0] = n0, c[1] = static_cast<uint32_t>(p1), c[2] = n2, c[3] = static_cast<uint32_t>(p0);
  }
  return {c[0], c[1], c[2], c[3]};
}

}  // namespace weft::codegen

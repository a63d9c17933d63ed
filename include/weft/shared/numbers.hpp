#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weft/dtype.h"

// Every element type as it lies in memory, and its conversions. Arithmetic happens in one of three wide types
// (double, int64_t, uint64_t); a result is rounded to its element type once, to nearest even.
namespace weft::shared {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};
struct Float8E4M3 {
  uint8_t bits;
};  ///< the OCP "fn" form: no infinity, one NaN for each sign
struct Float8E5M2 {
  uint8_t bits;
};

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat> ||
                                       std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;
template <class T>
inline constexpr bool is_any_float = std::is_floating_point_v<T> || is_small_float<T>;
template <class T>
inline constexpr bool is_signed_int = std::is_integral_v<T> && std::is_signed_v<T>;
template <class T>
using Wide =
    std::conditional_t<is_any_float<T>, double, std::conditional_t<is_signed_int<T>, int64_t, uint64_t>>;

// ---- floats of 8 and 16 bits
// ------------------------------------------------------------------------------------

/// The nearest value with E exponent and M mantissa bits, as its bits. Finite formats have no infinity: what
/// is too large is NaN there, as in PyTorch's float8_e4m3fn.
template <int E, int M, bool Finite>
constexpr uint32_t narrow(double v) {
  constexpr int bias = (1 << (E - 1)) - 1;
  constexpr uint32_t top = (1u << (E + M)) - 1, infinity = top ^ ((1u << M) - 1);
  const auto bits = std::bit_cast<uint64_t>(v);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (E + M);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff), e = exponent - 1023 + bias;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    if (Finite) return sign | top;
    const auto payload = static_cast<uint32_t>(fraction >> (52 - M));
    return sign | infinity | (fraction == 0 ? 0 : payload != 0 ? payload : 1u << (M - 1));
  }
  if (e >= 1 << E) return sign | (Finite ? top : infinity);
  const int shift = 52 - M + (e < 1 ? 1 - e : 0);  // a subnormal result keeps fewer bits
  if (exponent == 0 || shift > 53) return sign;    // below half of the least subnormal
  const uint64_t full = fraction | uint64_t{1} << 52, half = uint64_t{1} << (shift - 1);
  const uint64_t rest = full & (2 * half - 1);
  uint64_t kept = full >> shift;
  kept += rest > half || (rest == half && (kept & 1));
  const auto code =
      static_cast<uint32_t>(e < 1 ? kept : (static_cast<uint64_t>(e - 1) << M) + kept);  // a carry reaches e
  if (Finite) return sign | (code > top ? top : code);
  return sign | (code > infinity ? infinity : code);
}

template <int E, int M, bool Finite>
constexpr double widen(uint32_t code) {
  constexpr int bias = (1 << (E - 1)) - 1;
  const uint64_t sign = static_cast<uint64_t>(code >> (E + M) & 1) << 63;
  const uint32_t e = code >> M & ((1u << E) - 1), m = code & ((1u << M) - 1);
  const uint64_t fraction = static_cast<uint64_t>(m) << (52 - M);
  if (e == (1u << E) - 1 && (!Finite || m == (1u << M) - 1))
    return std::bit_cast<double>(sign | uint64_t{0x7ff} << 52 | fraction);
  if (e != 0) return std::bit_cast<double>(sign | static_cast<uint64_t>(e + 1023 - bias) << 52 | fraction);
  constexpr double least = std::bit_cast<double>(static_cast<uint64_t>(1023 + 1 - bias - M) << 52);
  return sign != 0 ? -(m * least) : m * least;
}

// ---- load: element to wide type
// ---------------------------------------------------------------------------------

inline double load(double v) { return v; }
inline double load(float v) { return v; }
inline double load(Half v) { return widen<5, 10, false>(v.bits); }
inline double load(BFloat v) {
  const auto f = std::bit_cast<float>(static_cast<uint32_t>(v.bits) << 16);
  return f == f ? f : widen<8, 7, false>(v.bits);  // the conversion of a float would change a NaN's bits
}
inline double load(Float8E4M3 v) { return widen<4, 3, true>(v.bits); }
inline double load(Float8E5M2 v) { return widen<5, 2, false>(v.bits); }
inline int64_t load(int64_t v) { return v; }
inline int64_t load(int32_t v) { return v; }
inline int64_t load(int8_t v) { return v; }
inline uint64_t load(uint64_t v) { return v; }
inline uint64_t load(uint32_t v) { return v; }
inline uint64_t load(uint8_t v) { return v; }
inline uint64_t load(Bool v) { return v.bits != 0; }

// ---- store: wide type to element
// --------------------------------------------------------------------------------

namespace detail {
/// An integer as a double that rounds to fewer than 42 bits as the integer itself does: what a double cannot
/// hold is kept as one sticky bit, so nothing is rounded twice.
inline double sticky(uint64_t v) {
  if (v >> 53 == 0) return static_cast<double>(v);
  return static_cast<double>(v >> 11 | ((v & 0x7ff) != 0)) * 2048.0;
}
inline double sticky(int64_t v) {
  return v < 0 ? -sticky(0 - static_cast<uint64_t>(v)) : sticky(uint64_t(v));
}
inline double sticky(double v) { return v; }

template <class T, class W>
T store_small(W v) {
  const double d = sticky(v);
  if constexpr (std::is_same_v<T, Half>) return {static_cast<uint16_t>(narrow<5, 10, false>(d))};
  if constexpr (std::is_same_v<T, BFloat>) return {static_cast<uint16_t>(narrow<8, 7, false>(d))};
  if constexpr (std::is_same_v<T, Float8E4M3>) return {static_cast<uint8_t>(narrow<4, 3, true>(d))};
  if constexpr (std::is_same_v<T, Float8E5M2>) return {static_cast<uint8_t>(narrow<5, 2, false>(d))};
}
template <class T>
T saturate(double v) {
  if (v != v) return 0;
  // The bound above is a power of two, so a double holds it; the one below is a power of two or zero.
  constexpr double above = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (v >= above) return std::numeric_limits<T>::max();
  if (v <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(v);
}
}  // namespace detail

/// To floats: rounded once. Float to integer: truncates and saturates, NaN gives 0. Between integers: wraps
/// around.
template <class T, class W>
T store(W v) {
  if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<uint8_t>(v != 0)};
  } else if constexpr (is_small_float<T>) {
    return detail::store_small<T>(v);
  } else if constexpr (std::is_integral_v<T> && std::is_same_v<W, double>) {
    return detail::saturate<T>(v);
  } else {
    return static_cast<T>(v);
  }
}

// ---- from a dtype to its type
// -----------------------------------------------------------------------------------

template <class T>
struct Tag {
  using type = T;
};

/// The dtypes that an op is for.
enum class Kinds : uint8_t { floats, integers, numbers, bits, compute, all };
constexpr bool includes(Kinds kinds, DType t) {
  const bool is_bool = t == DType::boolean, is_number = is_compute(t) && !is_bool;
  switch (kinds) {
    case Kinds::floats: return is_number && is_float(t);
    case Kinds::integers: return is_number && !is_float(t);
    case Kinds::numbers: return is_number;
    case Kinds::bits: return is_bool || (is_number && !is_float(t));
    case Kinds::compute: return is_compute(t);
    case Kinds::all: return true;
  }
  return false;
}
constexpr const char* name(Kinds kinds) {
  switch (kinds) {
    case Kinds::floats: return "f64, f32, f16 or bf16";
    case Kinds::integers: return "i32, i64, u32 or u64";
    case Kinds::numbers: return "a number of a compute type";
    case Kinds::bits: return "i32, i64, u32, u64 or bool";
    case Kinds::compute: return "a compute type";
    case Kinds::all: return "any type";
  }
  return "";
}

/// f(Tag<T>{}) for the type of `t`, which must be one of `kinds`; only those are instantiated.
template <Kinds kinds, class F>
auto visit(DType t, F&& f) {
  if constexpr (includes(kinds, DType::f32)) {
    switch (t) {
      case DType::f64: return f(Tag<double>{});
      case DType::f32: return f(Tag<float>{});
      case DType::f16: return f(Tag<Half>{});
      case DType::bf16: return f(Tag<BFloat>{});
      default: break;
    }
  }
  if constexpr (includes(kinds, DType::i32)) {
    switch (t) {
      case DType::i32: return f(Tag<int32_t>{});
      case DType::i64: return f(Tag<int64_t>{});
      case DType::u32: return f(Tag<uint32_t>{});
      case DType::u64: return f(Tag<uint64_t>{});
      default: break;
    }
  }
  if constexpr (includes(kinds, DType::boolean))
    if (t == DType::boolean) return f(Tag<Bool>{});
  if constexpr (includes(kinds, DType::i8)) {
    switch (t) {
      case DType::f8e4m3: return f(Tag<Float8E4M3>{});
      case DType::f8e5m2: return f(Tag<Float8E5M2>{});
      case DType::i8: return f(Tag<int8_t>{});
      default: return f(Tag<uint8_t>{});
    }
  } else if constexpr (includes(kinds, DType::f32)) {
    return f(Tag<float>{});  // `kinds` has no such dtype
  } else {
    return f(Tag<int32_t>{});
  }
}

/// f(Tag<T>{}) for an unsigned integer as wide as the type: what movement moves.
template <class F>
auto visit_size(DType t, F&& f) {
  switch (byte_size(t)) {
    case 1: return f(Tag<uint8_t>{});
    case 2: return f(Tag<uint16_t>{});
    case 4: return f(Tag<uint32_t>{});
    default: return f(Tag<uint64_t>{});
  }
}

}  // namespace weft::shared

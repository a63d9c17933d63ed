#include "conformance/numbers.h"

#include <array>
#include <cmath>
#include <cstring>

namespace weft::conformance {

int64_t count(const Dims& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

// 2^e. The oracle asks for one or more with every element, of the dtypes' range nearly always.
static Real power_of_two(int e) {
  static constexpr int kMost = 1100;
  static const auto table = [] {
    std::array<Real, 2 * kMost + 1> powers;
    for (int i = -kMost; i <= kMost; ++i) powers[static_cast<size_t>(i + kMost)] = std::ldexp(Real{1}, i);
    return powers;
  }();
  return e < -kMost || e > kMost ? std::ldexp(Real{1}, e) : table[static_cast<size_t>(e + kMost)];
}

Real FloatFormat::eps() const { return power_of_two(-mantissa); }
Real FloatFormat::least() const { return power_of_two(least_exponent - mantissa); }
Real FloatFormat::least_normal() const { return power_of_two(least_exponent); }
int FloatFormat::spacing_exponent(Real x) const {
  int e = 0;
  std::frexp(x, &e);  // |x| in [2^(e-1), 2^e)
  return std::max(x == 0 ? least_exponent : e - 1, least_exponent) - mantissa;
}
Real FloatFormat::spacing(Real x) const { return power_of_two(spacing_exponent(x)); }

const FloatFormat& format(DType t) {
  static const FloatFormat f64{52, -1022, 11, std::numeric_limits<double>::max()};
  static const FloatFormat f32{23, -126, 8, std::numeric_limits<float>::max()};
  static const FloatFormat f16{10, -14, 5, 65504};
  static const FloatFormat bf16{7, -126, 8, std::ldexp(Real{255}, 120)};
  static const FloatFormat f8e4m3{3, -6, 4, 448, false};
  static const FloatFormat f8e5m2{2, -14, 5, 57344};
  switch (t) {
    case DType::f64: return f64;
    case DType::f16: return f16;
    case DType::bf16: return bf16;
    case DType::f8e4m3: return f8e4m3;
    case DType::f8e5m2: return f8e5m2;
    default: return f32;
  }
}

static bool is_signed(DType t) { return t == DType::i32 || t == DType::i64 || t == DType::i8; }
static int bits_of(DType t) { return t == DType::boolean ? 1 : static_cast<int>(8 * byte_size(t)); }

Real highest(DType t) { return power_of_two(bits_of(t) - is_signed(t)) - 1; }
Real lowest(DType t) { return is_signed(t) ? -power_of_two(bits_of(t) - 1) : Real{0}; }

Real round_to(DType t, Real x) {
  if (t == DType::boolean) return x != 0;
  if (!is_float(t)) {
    if (std::isnan(x)) return 0;
    return std::min(std::max(std::trunc(x), lowest(t)), highest(t)) + Real{0};  // no -0
  }
  if (t == DType::f32) return static_cast<float>(x);  // to the nearest, ties to even, as the processor does
  if (t == DType::f64) return static_cast<double>(x);
  const auto& f = format(t);
  const Real none = std::numeric_limits<Real>::quiet_NaN(), inf = std::numeric_limits<Real>::infinity();
  if (std::isnan(x)) return x;  // with its sign
  if (std::isinf(x)) return f.infinity ? x : none;
  const int step = f.spacing_exponent(x);
  const Real y = std::rint(x * power_of_two(-step)) * power_of_two(step);
  if (std::fabs(y) > f.largest) return f.infinity ? std::copysign(inf, x) : none;
  return y == 0 ? std::copysign(Real{0}, x) : y;
}

Real wrap_to(DType t, __int128 x) {
  const int bits = bits_of(t);
  auto u = static_cast<unsigned __int128>(x) & ((static_cast<unsigned __int128>(1) << bits) - 1);
  auto s = static_cast<__int128>(u);
  if (is_signed(t) && (u >> (bits - 1))) s -= static_cast<__int128>(1) << bits;
  return static_cast<Real>(s);
}

// ---- bytes -----------------------------------------------------------------------------------------------

static Real decode_small(DType t, uint32_t code) {
  const auto& f = format(t);
  const int e = static_cast<int>(code >> f.mantissa & ((1u << f.exponent_bits) - 1));
  const int m = static_cast<int>(code & ((1u << f.mantissa) - 1)), full = 1 << f.mantissa;
  const bool top = e == (1 << f.exponent_bits) - 1;
  Real x = e == 0 ? Real(m) * power_of_two(f.least_exponent - f.mantissa)
                  : Real(full + m) * power_of_two(f.least_exponent + e - 1 - f.mantissa);
  if (top && f.infinity)
    x = m ? std::numeric_limits<Real>::quiet_NaN() : std::numeric_limits<Real>::infinity();
  if (top && !f.infinity && m == full - 1) x = std::numeric_limits<Real>::quiet_NaN();
  return code >> (f.mantissa + f.exponent_bits) ? -x : x;
}

static uint32_t encode_small(DType t, Real x) {
  const auto& f = format(t);
  const uint32_t sign = static_cast<uint32_t>(std::signbit(x)) << (f.mantissa + f.exponent_bits);
  const uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa;
  if (std::isnan(x)) return sign | top | (f.infinity ? 1u << (f.mantissa - 1) : (1u << f.mantissa) - 1);
  if (std::isinf(x)) return sign | top;
  const Real a = std::fabs(x);
  if (a < f.least_normal()) return sign | static_cast<uint32_t>(a / f.least());
  int e = 0;
  const Real m = std::frexp(a, &e);  // in [1/2, 1)
  const auto fraction = static_cast<uint32_t>(m * power_of_two(f.mantissa + 1)) - (1u << f.mantissa);
  return sign | static_cast<uint32_t>(e - f.least_exponent) << f.mantissa | fraction;
}

template <class T>
static Real get(const std::byte* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return static_cast<Real>(v);
}
template <class T>
static void put(std::byte* at, T v) {
  std::memcpy(at, &v, sizeof v);
}

static Real decode_one(DType t, const std::byte* at) {
  uint16_t two = 0;
  switch (t) {
    case DType::f64: return get<double>(at);
    case DType::f32: return get<float>(at);
    case DType::i32: return get<int32_t>(at);
    case DType::i64: return get<int64_t>(at);
    case DType::u32: return get<uint32_t>(at);
    case DType::u64: return get<uint64_t>(at);
    case DType::i8: return get<int8_t>(at);
    case DType::f16:
    case DType::bf16: std::memcpy(&two, at, 2); return decode_small(t, two);
    case DType::f8e4m3:
    case DType::f8e5m2: return decode_small(t, static_cast<uint32_t>(*at));
    default: return get<uint8_t>(at);
  }
}

static void encode_one(DType t, Real x, std::byte* at) {
  switch (t) {
    case DType::f64: return put(at, static_cast<double>(x));
    case DType::f32: return put(at, static_cast<float>(x));
    case DType::i32: return put(at, static_cast<int32_t>(x));
    case DType::i64: return put(at, static_cast<int64_t>(x));
    case DType::u32: return put(at, static_cast<uint32_t>(x));
    case DType::u64: return put(at, static_cast<uint64_t>(x));
    case DType::i8: return put(at, static_cast<int8_t>(x));
    case DType::f16:
    case DType::bf16: return put(at, static_cast<uint16_t>(encode_small(t, x)));
    case DType::f8e4m3:
    case DType::f8e5m2: return put(at, static_cast<uint8_t>(encode_small(t, x)));
    default: return put(at, static_cast<uint8_t>(x));
  }
}

Array decode(DType t, const Dims& shape, std::span<const std::byte> bytes) {
  Array a{t, shape, std::vector<Real>(bytes.size() / byte_size(t))};
  for (size_t i = 0; i < a.v.size(); ++i) a.v[i] = decode_one(t, bytes.data() + i * byte_size(t));
  return a;
}

std::vector<std::byte> encode(const Array& a) {
  std::vector<std::byte> bytes(a.v.size() * byte_size(a.dtype));
  for (size_t i = 0; i < a.v.size(); ++i) encode_one(a.dtype, a.v[i], bytes.data() + i * byte_size(a.dtype));
  return bytes;
}

Tensor to_tensor(const Array& a, const std::string& backend) {
  return Tensor::from_bytes(encode(a), a.shape, a.dtype, backend);
}

Array from_tensor(const Tensor& t) {
  const auto sizes = t.sizes();
  return decode(t.dtype(), Dims(sizes.begin(), sizes.end()), t.to_bytes());
}

// ---- random numbers --------------------------------------------------------------------------------------

uint64_t Random::bits() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
double Random::normal() {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

}  // namespace weft::conformance

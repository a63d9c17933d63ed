#pragma once
#include "codegen/dialect.h"

// The rules of C with OpenCL's functions, which every dialect of C shares: one whose language lacks a name
// defines it in its prelude. Contraction is off and only precise functions are used, so results are the same
// on every device up to the errors that OpenCL allows for functions (exp, sin, pow...) and, on devices
// without correct rounding, for sqrt and division.
namespace weft::codegen::opencl_rules {

using enum Type;

constexpr TypeSet kF32 = set_of(f32), kF16 = set_of(f16), kBf16 = set_of(bf16), kF64 = set_of(f64);
constexpr TypeSet kE4m3 = set_of(f8e4m3), kE5m2 = set_of(f8e5m2);
constexpr TypeSet kNarrow = kF16 | kBf16 | kE4m3 | kE5m2;  // in registers of f32
constexpr TypeSet kFloat = kF32 | kNarrow | kF64;
constexpr TypeSet kBool = set_of(boolean), kIndex = set_of(index);
constexpr TypeSet kUnsigned = set_of(u32, u64, u8);
constexpr TypeSet kInteger = set_of(i32, i64, u32, u64, i8, u8);
constexpr TypeSet kNumber = kAnyType & ~kBool;

inline constexpr Rule kRules[] = {
    {Op::constant, kF32 | kNarrow, kAnyType, "as_float($xu)"},
    {Op::constant, kF64, kAnyType, "as_double($xul)"},
    {Op::constant, kIndex, kAnyType, "$d"},
    {Op::constant, kBool, kAnyType, "($x != 0)"},
    {Op::constant, kInteger, kAnyType, "($t)$xul"},

    {Op::argument, kF32 | kNarrow, kAnyType, "as_float($s)"},
    {Op::argument, kF64, kAnyType, "as_double(((ulong)(uint)$S << 32) | (uint)$s)"},
    {Op::argument, set_of(i64, u64), kAnyType, "($t)(((ulong)(uint)$S << 32) | (uint)$s)"},
    {Op::argument, kBool, kAnyType, "($s != 0)"},
    {Op::argument, kAnyType, kAnyType, "($t)$s"},
    {Op::item, kIndex, kAnyType, "(int)get_global_id(0)"},
    {Op::local, kIndex, kAnyType, "(int)get_local_id(0)"},
    {Op::group, kIndex, kAnyType, "(int)get_group_id(0)"},
    {Op::load_shared, kAnyType, kAnyType, "$0[$1]"},
    {Op::store_shared, kAnyType, kAnyType, "$0[$1] = $2;"},
    {Op::barrier, kIndex, kAnyType, "barrier(CLK_LOCAL_MEM_FENCE);"},

    {Op::load, kF16, kAnyType, "$1 ? vload_half($0, $b) : 0.0f"},
    {Op::load, kF16, kAnyType, "vload_half($0, $b)"},
    {Op::load, kBf16, kAnyType, "$1 ? as_float((uint)$b[$0] << 16) : 0.0f"},
    {Op::load, kBf16, kAnyType, "as_float((uint)$b[$0] << 16)"},
    {Op::load, kE4m3, kAnyType, "$1 ? weft_of_e4m3($b[$0]) : 0.0f", "weft_of_e4m3"},
    {Op::load, kE4m3, kAnyType, "weft_of_e4m3($b[$0])", "weft_of_e4m3"},
    {Op::load, kE5m2, kAnyType, "$1 ? weft_of_e5m2($b[$0]) : 0.0f", "weft_of_e5m2"},
    {Op::load, kE5m2, kAnyType, "weft_of_e5m2($b[$0])", "weft_of_e5m2"},
    {Op::load, kBool, kAnyType, "$1 ? $b[$0] != 0 : false"},
    {Op::load, kBool, kAnyType, "$b[$0] != 0"},
    {Op::load, kAnyType, kAnyType, "$1 ? $b[$0] : ($t)0"},
    {Op::load, kAnyType, kAnyType, "$b[$0]"},

    {Op::store, kF16, kAnyType, "vstore_half_rte($1, $0, $b);"},
    {Op::store, kBf16, kAnyType, "$b[$0] = (ushort)(as_uint($1) >> 16);"},
    {Op::store, kE4m3, kAnyType, "$b[$0] = weft_to_e4m3($1);", "weft_to_e4m3"},
    {Op::store, kE5m2, kAnyType, "$b[$0] = weft_to_e5m2($1);", "weft_to_e5m2"},
    {Op::store, kBool, kAnyType, "$b[$0] = (uchar)($1 ? 1 : 0);"},
    {Op::store, kAnyType, kAnyType, "$b[$0] = $1;"},

    {Op::add, kFloat, kAnyType, "$[$0 + $1$]"},
    {Op::sub, kFloat, kAnyType, "$[$0 - $1$]"},
    {Op::mul, kFloat, kAnyType, "$[$0 * $1$]"},
    {Op::div, kFloat, kAnyType, "$[$0 / $1$]"},
    {Op::mod, kF64, kAnyType, "weft_mod_f64($0, $1)", "weft_mod_f64"},
    {Op::mod, kFloat, kAnyType, "$[weft_mod_f32($0, $1)$]", "weft_mod_f32"},
    {Op::power, kFloat, kAnyType, "$[pow($0, $1)$]"},
    {Op::exp, kFloat, kAnyType, "$[exp($0)$]"},
    {Op::log, kFloat, kAnyType, "$[log($0)$]"},
    {Op::log1p, kFloat, kAnyType, "$[log1p($0)$]"},
    {Op::sqrt, kFloat, kAnyType, "$[sqrt($0)$]"},
    {Op::sin, kFloat, kAnyType, "$[sin($0)$]"},
    {Op::cos, kFloat, kAnyType, "$[cos($0)$]"},
    {Op::tanh, kFloat, kAnyType, "$[tanh($0)$]"},
    {Op::erf, kFloat, kAnyType, "$[erf($0)$]"},
    {Op::floor, kFloat, kAnyType, "floor($0)"},
    {Op::round, kFloat, kAnyType, "rint($0)"},

    // Signed overflow is undefined in C, so signed integers wrap through unsigned ones.
    {Op::add, set_of(i32), kAnyType, "(int)((uint)$0 + (uint)$1)"},
    {Op::sub, set_of(i32), kAnyType, "(int)((uint)$0 - (uint)$1)"},
    {Op::mul, set_of(i32), kAnyType, "(int)((uint)$0 * (uint)$1)"},
    {Op::add, set_of(i64), kAnyType, "(long)((ulong)$0 + (ulong)$1)"},
    {Op::sub, set_of(i64), kAnyType, "(long)((ulong)$0 - (ulong)$1)"},
    {Op::mul, set_of(i64), kAnyType, "(long)((ulong)$0 * (ulong)$1)"},
    {Op::div, set_of(i32), kAnyType, "weft_div_i32($0, $1)", "weft_div_i32"},
    {Op::div, set_of(i64), kAnyType, "weft_div_i64($0, $1)", "weft_div_i64"},
    {Op::div, kUnsigned, kAnyType, "$1 == 0 ? ($t)0 : $0 / ($1 == 0 ? ($t)1 : $1)"},
    {Op::add, kNumber, kAnyType, "$0 + $1"},
    {Op::sub, kNumber, kAnyType, "$0 - $1"},
    {Op::mul, kNumber, kAnyType, "$0 * $1"},
    {Op::div, kNumber, kAnyType, "$0 / $1"},
    {Op::mod, kIndex, kAnyType, "$0 % $1"},
    {Op::mod, set_of(i32), kAnyType, "weft_mod_i32($0, $1)", "weft_mod_i32"},
    {Op::mod, set_of(i64), kAnyType, "weft_mod_i64($0, $1)", "weft_mod_i64"},
    {Op::mod, kUnsigned, kAnyType, "$1 == 0 ? ($t)0 : $0 % ($1 == 0 ? ($t)1 : $1)"},
    {Op::max, kFloat, kAnyType, "$0 > $1 || $0 != $0 ? $0 : $1"},
    {Op::max, kNumber, kAnyType, "$0 > $1 ? $0 : $1"},
    {Op::min, kFloat, kAnyType, "$0 < $1 || $0 != $0 ? $0 : $1"},
    {Op::min, kNumber, kAnyType, "$0 < $1 ? $0 : $1"},
    {Op::bit_and, kInteger | kBool, kAnyType, "$0 & $1"},
    {Op::bit_or, kInteger | kBool, kAnyType, "$0 | $1"},
    {Op::bit_xor, kInteger | kBool, kAnyType, "$0 ^ $1"},
    {Op::shift_left, set_of(i32), kAnyType, "(uint)$1 < 32u ? (int)((uint)$0 << $1) : 0"},
    {Op::shift_left, set_of(u32), kAnyType, "$1 < 32u ? $0 << $1 : 0u"},
    {Op::shift_left, set_of(i64), kAnyType, "(ulong)$1 < 64ul ? (long)((ulong)$0 << $1) : 0l"},
    {Op::shift_left, set_of(u64), kAnyType, "$1 < 64ul ? $0 << $1 : 0ul"},
    {Op::shift_right, set_of(i32), kAnyType, "$0 >> ((uint)$1 < 31u ? $1 : 31)"},
    {Op::shift_right, set_of(u32), kAnyType, "$1 < 32u ? $0 >> $1 : 0u"},
    {Op::shift_right, set_of(i64), kAnyType, "$0 >> ((ulong)$1 < 63ul ? $1 : 63l)"},
    {Op::shift_right, set_of(u64), kAnyType, "$1 < 64ul ? $0 >> $1 : 0ul"},
    {Op::less, kBool, kAnyType, "$0 < $1"},
    {Op::equal, kBool, kAnyType, "$0 == $1"},
    {Op::both, kBool, kAnyType, "$0 && $1"},
    {Op::select, kAnyType, kAnyType, "$0 ? $1 : $2"},
    {Op::fma, kF32 | kF64, kAnyType, "fma($0, $1, $2)"},

    {Op::cast, kBool, kAnyType, "$0 != 0"},
    {Op::cast, kAnyType, kBool, "$0 ? ($t)1 : ($t)0"},
    {Op::cast, kInteger, kFloat, "$0 != $0 ? ($t)0 : convert_$t_sat_rtz($0)"},
    {Op::cast, kInteger | kIndex, kInteger | kIndex, "($t)$0"},
    {Op::cast, kF64, kNumber, "convert_double($0)"},
    {Op::cast, kF32, kNarrow, "$0"},
    {Op::cast, kF32, kNumber, "convert_float($0)"},
    // Through an f32 rounded to odd, which avoids double rounding.
    {Op::cast, kNarrow, kF64, "$[weft_odd_f64($0)$]", "weft_odd_f64"},
    {Op::cast, kBf16, set_of(i32, i64), "$[weft_odd_i64($0)$]", "weft_odd_u64 weft_odd_i64"},
    {Op::cast, kBf16, set_of(u32, u64), "$[weft_odd_u64($0)$]", "weft_odd_u64"},
    {Op::cast, kNarrow, kNumber, "$[convert_float($0)$]"},

    {Op::philox, set_of(u32), kAnyType, "weft_philox($0, $1, $2)", "weft_philox"},
};

inline constexpr Helper kHelpers[] = {
    {"fp64", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"},
    {"weft_f16", R"(float weft_f16(float x) {
  ushort h;
  vstore_half_rte(x, 0, (half*)&h);
  return vload_half(0, (const half*)&h);
}
)"},
    {"weft_bf16", R"(float weft_bf16(float x) {
  const uint u = as_uint(x);
  const uint rounded = x != x ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u);
  return as_float(rounded & 0xffff0000u);
}
)"},
    // Floats of 8 bits: what they stand for; an f32 rounded to one; and the bits of one that is.
    {"weft_of_e4m3", R"(float weft_of_e4m3(uchar b) {
  const uint u = b & 127u;
  const float x = u < 8u ? (float)u * 0x1p-9f : as_float(u == 127u ? 0x7fc00000u : (u << 20) + 0x3c000000u);
  return b & 128u ? -x : x;
}
)"},
    {"weft_of_e5m2", R"(float weft_of_e5m2(uchar b) {
  const uint u = b & 127u;
  const float x = u < 4u     ? (float)u * 0x1p-16f
                  : u < 124u ? as_float((u << 21) + 0x38000000u)
                             : as_float(u == 124u ? 0x7f800000u : 0x7fc00000u);
  return b & 128u ? -x : x;
}
)"},
    {"weft_e4m3", R"(float weft_e4m3(float x) {
  const uint u = as_uint(x);
  const float r = fabs(x) < 0x1p-6f ? rint(x * 0x1p9f) * 0x1p-9f
                                    : as_float((u + 0x7ffffu + ((u >> 20) & 1u)) & 0xfff00000u);
  return fabs(x) <= 464.0f ? r : as_float(0x7fc00000u);
}
)"},
    {"weft_e5m2", R"(float weft_e5m2(float x) {
  const uint u = as_uint(x);
  const float r = fabs(x) < 0x1p-14f ? rint(x * 0x1p16f) * 0x1p-16f
                                     : as_float((u + 0xfffffu + ((u >> 21) & 1u)) & 0xffe00000u);
  return x != x ? x : fabs(x) < 61440.0f ? r : as_float((u & 0x80000000u) | 0x7f800000u);
}
)"},
    {"weft_to_e4m3", R"(uchar weft_to_e4m3(float x) {
  const uint u = as_uint(x);
  const uint bits = x != x               ? 127u
                    : fabs(x) < 0x1p-6f ? (uint)(fabs(x) * 0x1p9f)
                                         : ((u & 0x7fffffffu) - 0x3c000000u) >> 20;
  return (uchar)((u >> 24 & 128u) | bits);
}
)"},
    {"weft_to_e5m2", R"(uchar weft_to_e5m2(float x) {
  const uint u = as_uint(x);
  const uint bits = x != x                ? 126u
                    : fabs(x) > 57344.0f  ? 124u
                    : fabs(x) < 0x1p-14f ? (uint)(fabs(x) * 0x1p16f)
                                          : ((u & 0x7fffffffu) - 0x38000000u) >> 21;
  return (uchar)((u >> 24 & 128u) | bits);
}
)"},
    {"weft_odd_f64", R"(float weft_odd_f64(double x) {
  const float f = convert_float_rtz(x);
  return x != x || convert_double(f) == x ? f : as_float(as_uint(f) | 1u);
}
)"},
    {"weft_odd_u64", R"(float weft_odd_u64(ulong x) {
  if (x < 0x1000000ul) return convert_float((uint)x);
  const int shift = 40 - clz(x);
  const uint kept = (uint)(x >> shift);
  const uint lost = (x & ((1ul << shift) - 1ul)) != 0ul ? 1u : 0u;
  return ldexp(convert_float(kept | lost), shift);
}
)"},
    {"weft_odd_i64", R"(float weft_odd_i64(long x) {
  const float f = weft_odd_u64(x < 0 ? 0ul - (ulong)x : (ulong)x);
  return x < 0 ? -f : f;
}
)"},
    {"weft_div_i32", R"(int weft_div_i32(int a, int b) {
  const int q = a / (b == 0 || b == -1 ? 1 : b);
  return b == 0 ? 0 : b == -1 ? (int)(0u - (uint)a) : q;
}
)"},
    {"weft_div_i64", R"(long weft_div_i64(long a, long b) {
  const long q = a / (b == 0 || b == -1 ? 1l : b);
  return b == 0 ? 0l : b == -1 ? (long)(0ul - (ulong)a) : q;
}
)"},
    {"weft_mod_f32", R"(float weft_mod_f32(float a, float b) {
  const float r = fmod(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
)"},
    {"weft_mod_f64", R"(double weft_mod_f64(double a, double b) {
  const double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
)"},
    {"weft_mod_i32", R"(int weft_mod_i32(int a, int b) {
  const int r = a % (b == 0 || b == -1 ? 1 : b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"weft_mod_i64", R"(long weft_mod_i64(long a, long b) {
  const long r = a % (b == 0 || b == -1 ? 1l : b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"weft_philox", R"(uint weft_philox(ulong key, ulong counter, int word) {
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  uint c0 = (uint)counter, c1 = (uint)(counter >> 32), c2 = 0u, c3 = 0u;
  for (int i = 0; i < 10; ++i) {
    const uint n0 = mul_hi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = mul_hi(0xD2511F53u, c0) ^ c3 ^ k1;
    const uint n1 = 0xCD9E8D57u * c2, n3 = 0xD2511F53u * c0;
    c0 = n0; c1 = n1; c2 = n2; c3 = n3;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
}
)"},
};

}  // namespace weft::codegen::opencl_rules

#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

/// Element types. The first nine are compute types; the last four are storage types (cast, copy, movement).
enum class DType : uint8_t { f64, f32, f16, bf16, i32, i64, u32, u64, boolean, f8e4m3, f8e5m2, i8, u8 };
inline constexpr int kDTypeCount = 13;

struct DTypeInfo {
  const char* name;
  uint8_t bytes;
  uint8_t dlpack_code;  ///< DLDataTypeCode of DLPack 1.0.
  uint8_t mantissa;     ///< Explicit mantissa bits of a float type; 0 otherwise.
};

/// Indexed by DType.
inline constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {"f64", 8, 2, 52},    {"f32", 4, 2, 23}, {"f16", 2, 2, 10}, {"bf16", 2, 4, 7}, {"i32", 4, 0, 0},
    {"i64", 8, 0, 0},     {"u32", 4, 1, 0},  {"u64", 8, 1, 0},  {"bool", 1, 6, 0}, {"f8e4m3", 1, 10, 3},
    {"f8e5m2", 1, 12, 2}, {"i8", 1, 0, 0},   {"u8", 1, 1, 0},
};

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<int>(t)]; }
constexpr const char* name(DType t) { return info(t).name; }
constexpr size_t byte_size(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).mantissa != 0; }
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_compute(DType t) { return t <= DType::boolean; }
/// Distance from 1 to the next larger value; 0 for types that are not floats.
constexpr double epsilon(DType t) {
  return is_float(t) ? 1.0 / static_cast<double>(uint64_t{1} << info(t).mantissa) : 0.0;
}

/// The type with this name, as in "bf16".
constexpr std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (text == kDTypes[i].name) return static_cast<DType>(i);
  return std::nullopt;
}
/// The type with this DLPack code and width.
constexpr std::optional<DType> dtype_from_dlpack(uint8_t code, uint8_t bits) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (code == kDTypes[i].dlpack_code && bits == 8 * kDTypes[i].bytes) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace weft

#include "import/promote.h"

#include "base/element.h"

namespace weft::importer {
namespace {

enum Kind { boolean, integer, real };

Kind kind_of(DType t) { return t == DType::boolean ? boolean : is_float(t) ? real : integer; }

bool is_unsigned(DType t) { return t == DType::u8 || t == DType::u32 || t == DType::u64; }

DType dtype_of(const Number& n) {
  switch (n.kind) {
    case Number::Kind::boolean: return DType::boolean;
    case Number::Kind::integer: return DType::i64;
    case Number::Kind::real: return DType::f32;
  }
  return DType::f32;
}

}  // namespace

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  const Kind ka = kind_of(a), kb = kind_of(b);
  if (ka != kb) return ka > kb ? a : b;
  if (ka == real) {
    if (byte_size(a) == 1 || byte_size(b) == 1) return {};  // the 8-bit floats promote to nothing
    if (byte_size(a) != byte_size(b)) return byte_size(a) > byte_size(b) ? a : b;
    return DType::f32;  // f16 and bf16
  }
  // A signed integer that is wider holds an unsigned one; i16, which i8 and u8 promote to, does not exist
  // here.
  const DType wide = byte_size(a) >= byte_size(b) ? a : b, narrow = wide == a ? b : a;
  if (is_unsigned(wide) != is_unsigned(narrow) && (is_unsigned(wide) || byte_size(wide) == byte_size(narrow)))
    return {};
  return wide;
}

std::optional<DType> result_type(std::span<const Operand> operands) {
  std::optional<DType> by_priority[3];  // tensors with axes, without, numbers
  for (const Operand& o : operands) {
    if (!o.value && !o.number) continue;
    const DType dtype = o.value ? o.value.dtype() : dtype_of(*o.number);
    auto& here = by_priority[o.value ? (o.value.rank() > 0 ? 0 : 1) : 2];
    here = here ? promote(*here, dtype) : dtype;
    if (!here) return {};
  }
  std::optional<DType> all;
  for (const auto& lower : by_priority) {
    if (!lower) continue;
    if (!all || kind_of(*lower) > kind_of(*all)) all = lower;
  }
  return all;
}

bool is_exact(const Number& n, DType dtype) {
  // 2^63 is a double and no i64.
  const bool rounded =
      n.kind == Number::Kind::integer && (n.value >= 0x1p63 || static_cast<int64_t>(n.value) != n.whole);
  return !rounded && holds(dtype, n.value);
}

DType to_float(DType dtype) { return is_float(dtype) ? dtype : DType::f32; }

}  // namespace weft::importer

#pragma once
#include <cstddef>
#include <cstring>

#include "weft/shared/numbers.hpp"
#include "weft/status.h"

namespace weft {

/// Element `i` of an array of `dtype`, converted to T.
template <class T>
T load_element(DType dtype, const void* array, size_t i) {
  return shared::visit<shared::Kinds::all>(dtype, [&](auto tag) {
    typename decltype(tag)::type v;
    std::memcpy(&v, static_cast<const std::byte*>(array) + i * sizeof v, sizeof v);
    return shared::store<T>(shared::load(v));
  });
}

/// Rounds `value` to `dtype` and writes it as element `i`.
template <class T>
void store_element(DType dtype, void* array, size_t i, T value) {
  shared::visit<shared::Kinds::all>(dtype, [&](auto tag) {
    const auto v = shared::store<typename decltype(tag)::type>(shared::load(value));
    std::memcpy(static_cast<std::byte*>(array) + i * sizeof v, &v, sizeof v);
  });
}

/// Is `value` a number of `dtype`, so that storing it rounds nothing?
inline bool holds(DType dtype, double value) {
  // Storing saturates, and the largest integers round to these.
  if ((dtype == DType::i64 && value >= 0x1p63) || (dtype == DType::u64 && value >= 0x1p64)) return false;
  std::byte there[sizeof(double)];
  store_element(dtype, there, 0, value);
  return load_element<double>(dtype, there, 0) == value;
}

/// May a literal be used as an element of `dtype`? Integers must hold it exactly; floats may round it, but
/// not to infinity or zero.
inline bool may_stand_for(DType dtype, double value) {
  if (!is_float(dtype)) return holds(dtype, value);
  if (!std::isfinite(value) || value == 0) return true;
  std::byte there[sizeof(double)];
  store_element(dtype, there, 0, value);
  const auto rounded = load_element<double>(dtype, there, 0);
  return std::isfinite(rounded) && rounded != 0;
}
/// The message for a number that may not.
inline Status cannot_hold(std::string_view where, DType dtype, double value) {
  const char* const other = dtype == DType::f32 ? "f64" : "f32";
  return invalid("{}: {} can't hold {}; use {} (cast(x, DType::{}) converts a tensor)", where, name(dtype),
                 value, other, other);
}

}  // namespace weft

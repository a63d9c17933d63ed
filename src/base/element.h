#pragma once
#include <cstddef>
#include <cstring>

#include "weft/shared/numbers.hpp"

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

}  // namespace weft

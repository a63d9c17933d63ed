#pragma once
#include <string_view>
#include <vector>

#include "weft/backend.h"
#include "weft/dtype.h"
#include "weft/shape.h"
#include "weft/small_vector.h"

// Reading the C structs of a call.
namespace weft::loops {

using Sizes = SmallVector<int64_t, 8>;

/// The element type. Call only after `check_common` has seen it.
inline DType dtype(const weft_type& t) {
  return dtype_from_dlpack(t.dtype.code, t.dtype.bits).value_or(DType::f32);
}
inline DType dtype(const weft_tensor& t) {
  return dtype_from_dlpack(t.dl.dtype.code, t.dl.dtype.bits).value_or(DType::f32);
}
inline Sizes shape(const weft_tensor& t) { return Sizes(t.dl.shape, t.dl.shape + t.dl.ndim); }
inline Sizes max_shape(const weft_type& t) { return Sizes(t.max, t.max + t.rank); }
inline Sizes min_shape(const weft_type& t) { return Sizes(t.min, t.min + t.rank); }
inline bool exact(const weft_type& t) { return std::equal(t.min, t.min + t.rank, t.max); }
inline int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
/// Product of sizes [begin, end).
inline int64_t product(std::span<const int64_t> sizes, size_t begin, size_t end) {
  return begin < end ? product(sizes.subspan(begin, end - begin)) : 1;
}

inline const weft_attr* find_attr(const weft_call& call, std::string_view name) {
  for (uint32_t i = 0; i < call.n_attrs; ++i)
    if (name == call.attrs[i]->name) return call.attrs[i];
  return nullptr;
}
inline int64_t int_attr(const weft_call& call, std::string_view name, int64_t otherwise) {
  const weft_attr* a = find_attr(call, name);
  if (!a) return otherwise;
  if (a->kind == WEFT_ATTR_INTS) return a->n ? a->ints[0] : otherwise;
  return a->kind == WEFT_ATTR_FLOAT ? static_cast<int64_t>(a->f) : a->i;
}
inline double float_attr(const weft_call& call, std::string_view name, double otherwise) {
  const weft_attr* a = find_attr(call, name);
  return !a ? otherwise : a->kind == WEFT_ATTR_INT ? static_cast<double>(a->i) : a->f;
}
inline Sizes ints_attr(const weft_call& call, std::string_view name) {
  const weft_attr* a = find_attr(call, name);
  return a && a->kind == WEFT_ATTR_INTS ? Sizes(a->ints, a->ints + a->n) : Sizes();
}

}  // namespace weft::loops

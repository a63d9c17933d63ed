#pragma once
#include "weft/shared/numbers.hpp"
#include "weft/shared/walk.hpp"

// cast: between all types, through the wide type of the source, so that 13 x 13 conversions need 13 loads and
// 39 stores.
namespace weft::shared {

namespace detail {

template <class W>
void store_all(const W* from, char* to, DType t, int64_t n) {
  visit<Kinds::all>(t, [&]<class T>(Tag<T>) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = store<T>(from[i]);
  });
}

inline void cast_elements(const char* from, DType from_type, char* to, DType to_type, int64_t n) {
  constexpr int64_t kBlock = 512;
  visit<Kinds::all>(from_type, [&]<class T>(Tag<T>) {
    Wide<T> wide[kBlock];
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(kBlock, n - at);
      for (int64_t i = 0; i < count; ++i) wide[i] = load(reinterpret_cast<const T*>(from)[at + i]);
      store_all(wide, to + at * static_cast<int64_t>(byte_size(to_type)), to_type, count);
    }
  });
}
}  // namespace detail

/// Float to integer truncates and saturates, NaN gives 0; to bool: x != 0; to f8e4m3: too large gives NaN.
inline std::array<KernelRecord, 1> cast_records() {
  return {KernelRecord{.op = "cast",
                       .variant = "shared",
                       .reads = {"dtype"},
                       .accepts = [](const OpCall& c) { return arity(c, 1, 1); },
                       .launch = [](const Launch& l) -> Outcome {
                         const TensorView x = l.input(0), y = l.output(0);
                         l.host().parallel_for(y.size(), kGrain, [&](int64_t begin, int64_t end) {
                           detail::cast_elements(x.data() + begin * int64_t(byte_size(x.dtype())), x.dtype(),
                                                 y.data() + begin * int64_t(byte_size(y.dtype())), y.dtype(),
                                                 end - begin);
                         });
                         return Outcome::ok();
                       },
                       .determinism = WEFT_DETERMINISM_DEVICES,
                       .in_place = true}};
}

}  // namespace weft::shared

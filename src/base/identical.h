#pragma once
#include <algorithm>
#include <bit>

#include "weft/attr.h"

namespace weft {

/// Equal bit for bit: 0.0 and -0.0 are two values, and a NaN is itself.
inline bool identical(const AttrValue& a, const AttrValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return x && y ? std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y) : a == b;
}
inline bool identical(const std::vector<AttrValue>& a, const std::vector<AttrValue>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const AttrValue& x, const AttrValue& y) { return identical(x, y); });
}

}  // namespace weft

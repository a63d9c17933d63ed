#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace weft::conformance {

/// Holds every f64, i64 and u64 exactly, and rounds 2^11 times finer than f64: truth for all dtypes.
using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64, "the oracle needs 64 bits of mantissa");
inline constexpr Real kInf = std::numeric_limits<Real>::infinity();
inline constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

using Dims = std::vector<int64_t>;
int64_t count(const Dims& shape);

}  // namespace weft::conformance

#pragma once
#include <cstdint>

namespace weft::ir {

/// Where an axis ends, whatever its size: the default `stop` of a slice in a graph. Dim::kMax, which is that
/// in C++, is more than a dimension's text may say.
inline constexpr int64_t kEnd = int64_t{1} << 60;

}  // namespace weft::ir

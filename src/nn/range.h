#pragma once
#include <cstddef>
#include <span>

#include "weft/dtype.h"

// Converting floats rounds; it may not make an infinity of a number, or a NaN where there is no infinity.
namespace weft::nn {

/// Is there a number in `from` that has none near it in `to`? Both are floats.
bool may_overflow(DType from, DType to);
/// Is there one among these elements? Infinities and NaNs are none. It takes about as long as reading them.
bool overflows(DType from, std::span<const std::byte> elements, DType to);

}  // namespace weft::nn

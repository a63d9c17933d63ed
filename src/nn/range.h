#pragma once
#include <cstddef>
#include <span>

#include "weft/dtype.h"

// Conversion of floats may round, but must not turn a number into infinity, or NaN in formats without
// infinity.
namespace weft::nn {

/// Does `from` have numbers beyond the range of `to`? Both are floats.
bool may_overflow(DType from, DType to);
/// Is one of these elements such a number? Infinities and NaNs are not. Takes about as long as reading them.
bool overflows(DType from, std::span<const std::byte> elements, DType to);

}  // namespace weft::nn

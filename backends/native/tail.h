#pragma once
#include <cstdint>

namespace weft::native {

/// What becomes of the sums of a convolution before they are stored: relu((sum + bias) + (more + more_bias)),
/// or without relu. A row holds the places of one filter.
struct Tail {
  const float* bias = nullptr;       ///< of the first row on; null: none
  const float* more = nullptr;       ///< from the first element on, with rows as far apart as the result's
  const float* more_bias = nullptr;  ///< as `bias`; only with `more`
  bool relu = false;
  bool past = false;  ///< results are too large to be read from the caches: whole lines of them bypass these

  /// The tail of elements that begin at a row, and at an offset in the result.
  Tail at(int64_t row, int64_t offset) const {
    return {bias ? bias + row : nullptr, more ? more + offset : nullptr,
            more_bias ? more_bias + row : nullptr, relu, past};
  }
  bool changes() const { return bias || more || relu || past; }
};

}  // namespace weft::native

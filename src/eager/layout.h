#pragma once
#include "eager/tensor_impl.h"

// Tensors whose elements are not row-major without gaps: imports from elsewhere.
namespace weft::eager {

/// Makes `t` irregular: strides in elements.
void set_strides(Tensor& t, IntList strides);
/// Elements from the first to behind the last, gaps among them; 0 where there are none. Nothing where that is
/// more than 64 bits count.
std::optional<uint64_t> span_of(std::span<const int64_t> shape, std::span<const int64_t> strides);
/// Are these row-major strides without gaps? Those of axes of one element do not matter.
bool row_major(std::span<const int64_t> shape, std::span<const int64_t> strides);
/// Waits, and writes the elements of an irregular tensor row-major.
Status read_rows(const Tensor& t, std::byte* to);

}  // namespace weft::eager

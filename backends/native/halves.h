#pragma once
#include <cstdint>

#include "backends/native/steps.h"

// Products of f32 with f16 or bf16, which is read in place and widened in registers: products of few rows are
// bound by memory, and this halves the bytes. Sums are f32.
namespace weft::native {

/// c[i * c_row + j] = a[i, :] . b[j, :] for m contiguous rows of a and n rows of b that are `b_step` apart; k
/// elements each. An element's value does not depend on m or n.
void half_dots(Stored type, const float* a, int64_t m, const uint16_t* b, int64_t b_step, int64_t n,
               int64_t k, float* c, int64_t c_row);

/// c[j] = sum over p of a[p] b[p, j], for k rows of b that are `b_step` apart; n elements each.
void half_sums(Stored type, const float* a, const uint16_t* b, int64_t b_step, int64_t k, int64_t n,
               float* c);

}  // namespace weft::native

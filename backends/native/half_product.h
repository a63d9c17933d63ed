#pragma once
#include "backends/native/gemm.h"
#include "backends/native/steps.h"
#include "weft/backend.hpp"

// Matrix products of halves: f16 or bf16 in, f32 sums, each result rounded once; what it is added to counts
// as part of the sum.
namespace weft::native {

/// c[m, n] = a[m, k] b[k, n] (+ start[n]) (+ c), all of one half type. Operands have steps along both axes,
/// as in Product; c has rows without gaps.
struct HalfProduct {
  Stored type = Stored::bf16;
  int64_t m = 0, n = 0, k = 0;
  const uint16_t* a = nullptr;
  int64_t a_row = 0, a_column = 1;
  const uint16_t* b = nullptr;
  int64_t b_row = 0, b_column = 1;
  uint16_t* c = nullptr;
  const uint16_t* start = nullptr;  ///< what each row of c begins with in place of zeros
  bool accumulate = false;          ///< c += a b
};

/// One product on all threads. A few rows against a transposed b (a weight, as text is generated) read b once
/// and widen it in registers, so that they take half the memory traffic of f32. Otherwise b is widened as it
/// is packed, or in pieces where the product is too small for that.
void multiply_halves(const backend::Host& host, const HalfProduct& p);

/// One product on this thread.
void multiply_halves(const HalfProduct& p);

}  // namespace weft::native

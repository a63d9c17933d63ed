#include "weft/quantize.h"

#include "weft/ops.h"

namespace weft {

/// The number of `t` that the largest |x| becomes; 0 for a dtype that is not for quantised elements.
static double largest(DType t) {
  switch (t) {
    case DType::f8e4m3: return 448;
    case DType::f8e5m2: return 57344;
    case DType::i8: return 127;
    default: return 0;
  }
}

static Quantized quantized(const char* what, const Tensor& given, DType dtype, bool rows) {
  const DType from = given.dtype();
  const double highest = largest(dtype);
  if (highest == 0) throw Error(invalid("{}: wants dtype f8e4m3, f8e5m2 or i8, got {}", what, name(dtype)));
  if (from != DType::f32 && !is_half(from))
    throw Error(invalid("{}: wants x of f32, f16 or bf16, got {}", what, text(given.type())));
  if (rows && given.rank() == 0)
    throw Error(invalid("{}: wants x with rows, got {}", what, text(given.type())));
  const Tensor x = from == DType::f32 ? given.detach() : cast(given.detach(), DType::f32);
  const Tensor most = rows ? max(abs(x), {-1}, true) : max(abs(x));
  // No scale is 0: none is less than the least normal number.
  const Tensor scale = clamp(most / highest, 0x1p-126);
  const Tensor scaled = clamp(x / scale, -highest, highest);
  // A cast to an integer truncates; NaN becomes 0, which its scale, NaN or infinite, makes NaN again.
  const Tensor values = cast(dtype == DType::i8 ? round(scaled) : scaled, dtype);
  Shape of_rows = x.type().shape;
  if (rows) of_rows.pop_back();
  return {values, rows ? reshape(scale, of_rows) : scale};
}

Quantized quantize(const Tensor& x, DType dtype) { return quantized("quantize", x, dtype, false); }
Quantized quantize_rows(const Tensor& x, DType dtype) { return quantized("quantize_rows", x, dtype, true); }

}  // namespace weft

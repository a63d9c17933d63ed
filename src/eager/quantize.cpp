#include "weft/quantize.h"

#include "weft/ops.h"

namespace weft {

static double largest(DType t) { return t == DType::f8e4m3 ? 448 : 57344; }

static Quantized quantized(const char* what, const Tensor& given, DType dtype, bool rows) {
  const DType from = given.dtype();
  if (dtype != DType::f8e4m3 && dtype != DType::f8e5m2)
    throw Error(invalid("{}: wants dtype f8e4m3 or f8e5m2, got {}", what, name(dtype)));
  if (from != DType::f32 && !is_half(from))
    throw Error(invalid("{}: wants x of f32, f16 or bf16, got {}", what, text(given.type())));
  if (rows && given.rank() == 0)
    throw Error(invalid("{}: wants x with rows, got {}", what, text(given.type())));
  const Tensor x = from == DType::f32 ? given.detach() : cast(given.detach(), DType::f32);
  const Tensor most = rows ? max(abs(x), {-1}, true) : max(abs(x));
  // No scale is 0: none is less than the least normal number.
  const Tensor scale = clamp(most / largest(dtype), 0x1p-126);
  const Tensor values = cast(clamp(x / scale, -largest(dtype), largest(dtype)), dtype);
  Shape of_rows = x.type().shape;
  if (rows) of_rows.pop_back();
  return {values, rows ? reshape(scale, of_rows) : scale};
}

Quantized quantize(const Tensor& x, DType dtype) { return quantized("quantize", x, dtype, false); }
Quantized quantize_rows(const Tensor& x, DType dtype) { return quantized("quantize_rows", x, dtype, true); }

}  // namespace weft

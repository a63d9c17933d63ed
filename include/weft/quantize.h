#pragma once
#include "weft/tensor.h"

// Tensors as 8-bit numbers and scales, as `ops::scaled_matmul` takes them.
namespace weft {

/// An element of x is about `values` times its scale.
struct Quantized {
  Tensor values;  ///< f8e4m3, f8e5m2 or i8, of the shape of x
  Tensor scale;   ///< f32, of rank 0, or of the shape of x without its last axis: one for each row
};

/// `x` as 8-bit numbers with one scale for all of it: the largest |x| becomes the largest finite number of
/// `dtype`, and all others are rounded to nearest even. That of i8 is taken to be 127, so that -x has the
/// values of x with the other sign: -128 does not occur. If an element is not finite, `values` times `scale`
/// is NaN for all that share the scale.
///
/// DType    x f32, f16 or bf16; `dtype` f8e4m3, f8e5m2 or i8.
/// Grad     none.
/// Errors   invalid_argument for another dtype, or an x without elements.
[[nodiscard]] Quantized quantize(const Tensor& x, DType dtype = DType::f8e4m3);
/// The same with a scale for each row of the last axis.
[[nodiscard]] Quantized quantize_rows(const Tensor& x, DType dtype = DType::f8e4m3);

}  // namespace weft

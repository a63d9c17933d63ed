#include "conformance/cases.h"

namespace weft::conformance {

OpCases global_norm_clip_cases() {
  const auto norm = [](Real v, DType t) { return values({v}, {}).as(t); };
  const DTypes f64 = only({DType::f64}), rest = kFloats & ~f64;
  return {
      {.inputs = {normal({4, 5}), norm(4, DType::f64)},
       .attrs = {{"max_norm", 2.5}},
       .why = "clipped",
       .dtypes = f64},
      {.inputs = {normal({4, 5}), norm(4, DType::f32)},
       .attrs = {{"max_norm", 2.5}, {"epsilon", 0.25}},
       .why = "clipped, by f32",
       .dtypes = rest,
       .no_gradient = "f32"},
      {.inputs = {normal({7}), norm(0.25, DType::f64)}, .why = "as it was", .dtypes = f64},
      {.inputs = {normal({7}), norm(0.25, DType::f32)},
       .why = "as it was, by f32",
       .dtypes = rest,
       .no_gradient = "f32"},
      {.inputs = {normal({3}), norm(kNan, DType::f32)},
       .why = "a NaN is not small",
       .dtypes = rest,
       .no_gradient = "f32"},
      {.inputs = {normal({0}), norm(1, DType::f32)}, .why = "empty", .dtypes = rest, .no_gradient = "f32"},
  };
}

}  // namespace weft::conformance

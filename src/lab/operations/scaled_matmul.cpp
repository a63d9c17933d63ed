#include "lab/kernels/operation_file.h"

namespace weft::lab {

// a and b are 8-bit floats; the result is f32.
static Sized scaled_matmul_at(const Shapes& s) {
  const auto scale = [](int64_t rows) { return uniform({rows}, 0.01, 4).as(DType::f32); };
  return {{normal(s[0]), normal(s[1]), scale(s[0][0]), scale(s[1][0])},
          {{"dtype", std::string("f32")}},
          {{{0, -1, 0, -1}, 0}, {{-1, 0, -1, 0}, 1}}};
}

OperationFile scaled_matmul_operation() {
  return {.shapes = {"a [m, k]", "b [n, k]"},
          .make = scaled_matmul_at,
          .sizes = {{"Llama 8B in 8 bits, 16 tokens", {{16, 4096}, {4096, 4096}}}},
          .sweep = {{{128, 128}, {128, 128}}, {{256, 256}, {256, 256}}, {{512, 512}, {512, 512}}},
          .dtypes = {DType::f8e4m3, DType::f8e5m2}};
}

}  // namespace weft::lab

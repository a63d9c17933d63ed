#include "lab/kernels/operation_file.h"

namespace weft::lab {

// The result is f32.
static Sized scaled(conformance::Input a, conformance::Input b) {
  const auto scale = [](int64_t rows) { return uniform({rows}, 0.01, 4).as(DType::f32); };
  auto a_scale = scale(a.shape[0]), b_scale = scale(b.shape[0]);
  return {{std::move(a), std::move(b), std::move(a_scale), std::move(b_scale)},
          {{"dtype", std::string("f32")}},
          {{{0, -1, 0, -1}, 0}, {{-1, 0, -1, 0}, 1}}};
}

OperationFile scaled_matmul_operation() {
  return {.shapes = {"a [m, k]", "b [n, k]"},
          .make = [](const Shapes& s) { return scaled(normal(s[0]), normal(s[1])); },
          // As a layer is quantised: -128 does not occur.
          .make_of_integers =
              [](const Shapes& s) { return scaled(integers(s[0], -127, 127), integers(s[1], -127, 127)); },
          .sizes = {{"Llama 8B in 8 bits, 16 tokens", {{16, 4096}, {4096, 4096}}}},
          .sweep = {{{128, 128}, {128, 128}}, {{256, 256}, {256, 256}}, {{512, 512}, {512, 512}}},
          .dtypes = {DType::f8e4m3, DType::f8e5m2, DType::i8}};
}

}  // namespace weft::lab

#include "lab/kernels/operation_file.h"

namespace weft::lab {

static Sized layer_norm_at(const Shapes& s) {
  const conformance::Dims n = {s[0][1]};
  return {{normal(s[0]), normal(n), normal(n)}, {}, {{{0, -1, -1}, 0}}};
}

OperationFile layer_norm_operation() {
  return {.shapes = {"x [rows, n]"},
          .make = layer_norm_at,
          .sizes = {{"GPT-2 124M, 512 tokens", {{512, 768}}}},
          .sweep = {{{64, 64}}, {{128, 128}}, {{256, 256}}, {{512, 512}}, {{1024, 1024}}, {{2048, 2048}}}};
}

}  // namespace weft::lab

#include "lab/kernels/operation_file.h"

namespace weft::lab {

OperationFile softmax_operation() {
  return {.shapes = {"x [rows, n]"},
          .make = [](const Shapes& s) { return Sized{{normal(s[0])}, {}, {{{0}, 0}}}; },
          .sizes = {{"GPT-2 124M, scores of 12 heads", {{1536, 128}}}, {"GPT-2's vocabulary", {{8, 50257}}}},
          .sweep = {{{64, 64}}, {{128, 128}}, {{256, 256}}, {{512, 512}}, {{1024, 1024}}, {{2048, 2048}}}};
}

}  // namespace weft::lab

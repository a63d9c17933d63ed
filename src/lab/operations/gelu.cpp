#include "lab/kernels/operation_file.h"

namespace weft::lab {

OperationFile gelu_operation() {
  return {.shapes = {"x [rows, n]"},
          .make = [](const Shapes& s) { return Sized{{normal(s[0])}, {}, {{{0}, 0}}}; },
          .sizes = {{"GPT-2 124M, 512 tokens", {{512, 3072}}}}};
}

}  // namespace weft::lab

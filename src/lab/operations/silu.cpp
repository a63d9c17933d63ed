#include "lab/kernels/operation_file.h"

namespace weft::lab {

OperationFile silu_operation() {
  return {.shapes = {"x [rows, n]"},
          .make = [](const Shapes& s) { return Sized{{normal(s[0])}, {}, {{{0}, 0}}}; },
          .sizes = {{"Llama 8B, 16 tokens", {{16, 14336}}}}};
}

}  // namespace weft::lab

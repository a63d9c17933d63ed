#include "lab/kernels/operation_file.h"

namespace weft::lab {

// To 8-bit floats: keys and values on the way into a small cache.
OperationFile cast_operation() {
  return {.shapes = {"x [rows, n]"},
          .make =
              [](const Shapes& s) {
                return Sized{{normal(s[0])}, {{"dtype", std::string("f8e4m3")}}, {{{0}, 0}}};
              },
          .sizes = {{"Llama 8B, keys of 512 tokens", {{512, 1024}}}}};
}

}  // namespace weft::lab

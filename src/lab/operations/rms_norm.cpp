#include "lab/kernels/operation_file.h"

namespace weft::lab {

static Sized rms_norm_at(const Shapes& s) { return {{normal(s[0]), normal({s[0][1]})}, {}, {{{0, -1}, 0}}}; }

OperationFile rms_norm_operation() {
  return {.shapes = {"x [rows, n]"},
          .make = rms_norm_at,
          .sizes = {{"Llama 8B, 64 tokens", {{64, 4096}}}, {"Llama 8B, a token", {{1, 4096}}}}};
}

}  // namespace weft::lab

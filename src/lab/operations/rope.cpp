#include "lab/kernels/operation_file.h"

namespace weft::lab {

static Sized rope_at(const Shapes& s) {
  const conformance::Dims table = {s[0][1], s[0][2] / 2};
  return {{normal(s[0]), normal(table), normal(table)}, {}, {{{0, -1, -1}, 0}}};
}

OperationFile rope_operation() {
  return {.shapes = {"x [heads, tokens, dim]"},
          .make = rope_at,
          .sizes = {{"Llama 8B, 128 tokens", {{32, 128, 128}}}}};
}

}  // namespace weft::lab

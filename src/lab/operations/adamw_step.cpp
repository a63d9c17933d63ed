#include "lab/kernels/operation_file.h"

namespace weft::lab {

// In place. A rate that is large enough for an update to be told from none in 8 bits of mantissa.
static Sized adamw_step_at(const Shapes& s) {
  return {{normal(s[0]), normal(s[0]), normal(s[0]), uniform(s[0], 0.1, 2), constant({}, 0.0625),
           constant({}, 0.5), constant({}, 0.25)},
          {},
          {{{0, 0, 0, 0, -1, -1, -1}, 0}}};
}

OperationFile adamw_step_operation() {
  return {.shapes = {"parameter [rows, n]"},
          .make = adamw_step_at,
          .sizes = {{"GPT-2 124M, a matrix of a layer", {{768, 3072}}}}};
}

}  // namespace weft::lab

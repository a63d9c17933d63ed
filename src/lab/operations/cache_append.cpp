#include "lab/kernels/operation_file.h"

namespace weft::lab {

// In place: rows for one token of each sequence, behind what is there already.
static Sized cache_append_at(const Shapes& s) {
  const int64_t sequences = s[0][0], capacity = s[0][2];
  return {{normal(s[0]), normal({sequences, s[0][1], 1, s[0][3]}),
           integers({sequences}, 0, static_cast<int>(capacity) - 1).as(DType::i32)},
          {},
          {{{0, 0, 0}, 0}, {{1, 1, -1}, 1}},
          2 * sequences * s[0][1] * s[0][3]};
}

OperationFile cache_append_operation() {
  return {.shapes = {"cache [sequences, heads, capacity, dim]"},
          .make = cache_append_at,
          .sizes = {{"Llama 8B, a token of 4 sequences", {{4, 8, 512, 128}}}}};
}

}  // namespace weft::lab

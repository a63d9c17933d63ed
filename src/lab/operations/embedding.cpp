#include "lab/kernels/operation_file.h"

namespace weft::lab {

static Sized embedding_at(const Shapes& s) {
  const auto ids = integers(s[1], 0, static_cast<int>(s[0][0]) - 1).as(DType::i32);
  return {{normal(s[0]), ids}, {}, {{{-1, 0}, 0}, {{1, -1}, 1}}, 2 * s[1][0] * s[0][1]};
}

OperationFile embedding_operation() {
  return {.shapes = {"table [rows, n]", "ids [tokens]"},
          .make = embedding_at,
          .sizes = {{"GPT-2 124M, 128 tokens", {{50257, 768}, {128}}}}};
}

}  // namespace weft::lab

#include "lab/kernels/operation_file.h"

namespace weft::lab {

// One number comes out, which depends on all: the oracle works out the whole of it.
static Sized cross_entropy_at(const Shapes& s) {
  return {{normal(s[0]), integers({s[0][0]}, 0, static_cast<int>(s[0][1]) - 1).as(DType::i64)}};
}

OperationFile cross_entropy_operation() {
  return {
      .shapes = {"logits [rows, classes]"},
      .make = cross_entropy_at,
      .sizes = {{"GPT-2's vocabulary, 4 tokens", {{4, 50257}}}, {"ResNet-50, 128 images", {{128, 1000}}}}};
}

}  // namespace weft::lab

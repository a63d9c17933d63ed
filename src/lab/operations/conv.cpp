#include "lab/kernels/operation_file.h"

namespace weft::lab {

// Padded so that sizes stay, for odd kernels.
static Sized conv_at(const Shapes& s) {
  const int64_t up = (s[1][2] - 1) / 2, left = (s[1][3] - 1) / 2;
  return {{normal(s[0]), normal(s[1])}, {{"padding", Shape{up, up, left, left}}}, {{{-1, 0}, 1}}};
}

OperationFile conv_operation() {
  return {.shapes = {"x [batch, channels, height, width]", "weight [out, channels, height, width]"},
          .make = conv_at,
          .sizes = {{"ResNet-50, 3 x 3", {{1, 64, 56, 56}, {64, 64, 3, 3}}},
                    {"ResNet-50, 1 x 1", {{1, 256, 14, 14}, {1024, 256, 1, 1}}}}};
}

}  // namespace weft::lab

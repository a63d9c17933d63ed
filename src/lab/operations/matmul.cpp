#include "lab/kernels/operation_file.h"

namespace weft::lab {

OperationFile matmul_operation() {
  return {.shapes = {"a [m, k]", "b [k, n]"},
          .make =
              [](const Shapes& s) {
                return Sized{{normal(s[0]), normal(s[1])}, {}, {{{0, -1}, 0}, {{-1, 1}, 1}}};
              },
          .sizes = {{"GPT-2 124M, 128 tokens", {{128, 768}, {768, 3072}}},
                    {"Llama 8B, a token", {{1, 4096}, {4096, 4096}}},
                    {"ResNet-50, the classes of 32 images", {{32, 2048}, {2048, 1000}}}},
          .sweep = {{{32, 32}, {32, 32}},
                    {{64, 64}, {64, 64}},
                    {{128, 128}, {128, 128}},
                    {{256, 256}, {256, 256}},
                    {{512, 512}, {512, 512}},
                    {{1024, 1024}, {1024, 1024}}}};
}

}  // namespace weft::lab

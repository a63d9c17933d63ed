#include <algorithm>

#include "lab/kernels/operation_file.h"

namespace weft::lab {

// Rows of a, columns of b and, where both have them, the matrices along each axis.
static std::vector<Rows> rows_of(const std::vector<conformance::Input>& in, const std::vector<Attr>& attrs) {
  const int a = static_cast<int>(in[0].shape.size()), b = static_cast<int>(in[1].shape.size()),
            y = std::max(a, b);
  const auto is_on = [&](const char* name) {
    return std::ranges::any_of(
        attrs, [&](const Attr& at) { return at.name == name && std::get<int64_t>(at.value) != 0; });
  };
  std::vector<Rows> rows = {{{a - (is_on("transpose_a") ? 1 : 2), -1}, y - 2},
                            {{-1, b - (is_on("transpose_b") ? 2 : 1)}, y - 1}};
  for (int i = 0; a == b && i < a - 2; ++i) rows.push_back({{i, i}, i});
  return rows;
}

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
                    {{1024, 1024}, {1024, 1024}}},
          .rows = rows_of};
}

}  // namespace weft::lab

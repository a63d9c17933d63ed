#include "lab/kernels/operation_file.h"

namespace weft::lab {

// Heads fall apart, those of the queries in groups: as many as share a head of the keys.
static Sized attention_at(const Shapes& s) {
  const int64_t group = s[0][1] % s[1][1] ? 1 : s[0][1] / s[1][1];
  return {{normal(s[0]), normal(s[1]), normal(s[1])},
          {},
          {{.operands = {0, 0, 0}, .results = 0},
           {.operands = {1, 1, 1}, .results = 1, .operand_blocks = {group, 1, 1}, .result_block = group}}};
}

OperationFile attention_operation() {
  return {
      .shapes = {"query [batch, heads, m, dim]", "key [batch, groups, n, dim]"},
      .make = attention_at,
      .sizes = {{"GPT-2 124M, prefill", {{1, 12, 128, 64}, {1, 12, 128, 64}}, {{"causal", 1}}},
                {"GPT-2 124M, decode", {{1, 12, 1, 64}, {1, 12, 512, 64}}},
                {"Llama 8B, decode of 4 sequences, 8 groups of heads", {{4, 32, 1, 128}, {4, 8, 512, 128}}}}};
}

}  // namespace weft::lab

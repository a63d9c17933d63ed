#include "../attention.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  cudnn::AttentionSizes sizes;
  if (auto taken = cudnn::attention_sizes(c, 6, sizes); !taken) return taken;
  // f16 has too few exponents for the gradients of scores.
  if (sizes.dtype != DType::bf16) return Support::no("computes on bf16, got {}", sizes.dtype);
  cudnn::describe_attention_grad(sizes, graph.rules.repeatable, graph);
  return Support::yes();
}

extern const KernelRecord attention_grad_engine = cudnn::served<describe>(
    {.op = "attention_grad", .variant = "engine", .reads = {"causal", "scale", "seq_first"}});

}  // namespace weft::kernels

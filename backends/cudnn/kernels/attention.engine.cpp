#include "../attention.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  cudnn::AttentionSizes sizes;
  if (auto taken = cudnn::attention_sizes(c, 3, sizes); !taken) return taken;
  cudnn::describe_attention(sizes, graph);
  return Support::yes();
}

extern const KernelRecord attention_engine = cudnn::served<describe>(
    {.op = "attention", .variant = "engine", .reads = {"causal", "scale", "seq_first"}});

}  // namespace weft::kernels

#include "../norm.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  if (auto taken = cudnn::norm_takes(c, true); !taken) return taken;
  cudnn::describe_norm(c, true, graph);
  return Support::yes();
}

extern const KernelRecord layer_norm_engine =
    cudnn::served<describe>({.op = "layer_norm", .variant = "engine", .reads = {"epsilon", "trailing"}});

}  // namespace weft::kernels

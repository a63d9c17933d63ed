#include "../norm.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  if (auto taken = cudnn::norm_takes(c, false); !taken) return taken;
  cudnn::describe_norm(c, false, graph);
  return Support::yes();
}

extern const KernelRecord rms_norm_engine =
    cudnn::served<describe>({.op = "rms_norm", .variant = "engine", .reads = {"epsilon"}});

}  // namespace weft::kernels

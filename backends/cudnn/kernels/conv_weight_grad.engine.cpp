#include "../convolution.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  using enum cudnn::ConvRole;
  if (auto taken = cudnn::conv_takes(c); !taken) return taken;
  cudnn::describe_conv(c, x, y, w, graph);
  return Support::yes();
}

extern const KernelRecord conv_weight_grad_engine =
    cudnn::served<describe>({.op = "conv_weight_grad",
                             .variant = "engine",
                             .reads = {"dilation", "groups", "kernel", "padding", "stride"}});

}  // namespace weft::kernels

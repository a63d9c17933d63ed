#include "../convolution.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  using enum cudnn::ConvRole;
  if (auto taken = cudnn::conv_takes(c); !taken) return taken;
  cudnn::describe_conv(c, x, w, y, graph);
  return Support::yes();
}

extern const KernelRecord conv_engine = cudnn::served<describe>(
    {.op = "conv", .variant = "engine", .reads = {"dilation", "groups", "padding", "stride"}});

}  // namespace weft::kernels

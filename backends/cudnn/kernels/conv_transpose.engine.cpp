#include "../convolution.h"
#include "../served.h"

namespace weft::kernels {

using namespace backend;

static Support describe(const OpCall& c, cudnn::Graph& graph) {
  using enum cudnn::ConvRole;
  if (auto taken = cudnn::conv_takes(c); !taken) return taken;
  cudnn::describe_conv(c, y, w, x, graph);
  return Support::yes();
}

extern const KernelRecord conv_transpose_engine =
    cudnn::served<describe>({.op = "conv_transpose",
                             .variant = "engine",
                             .reads = {"dilation", "groups", "output_padding", "padding", "stride"}});

}  // namespace weft::kernels

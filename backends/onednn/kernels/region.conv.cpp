#include "backends/onednn/convolution_call.h"

// A body that is conv_channels_last, what is added to it, and relu.
namespace weft::onednn {

using namespace weft::backend;

extern const KernelRecord region_conv = {
    .op = "region",
    .variant = "conv",
    .accepts = accepts_convolution,
    .prepare = prepare_convolution,
    .release = release_convolution,
    .launch = launch_convolution,
    .determinism = WEFT_DETERMINISM_RUN,  // parts depend on the other sizes
    .reads_all = true,
    .pack = pack_filters,
};

}  // namespace weft::onednn

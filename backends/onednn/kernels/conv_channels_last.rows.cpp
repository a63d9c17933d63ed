#include "backends/onednn/convolution_call.h"

// conv_channels_last, in rows.
namespace weft::onednn {

using namespace weft::backend;

extern const KernelRecord conv_channels_last_rows = {
    .op = "conv_channels_last",
    .variant = "rows",
    .reads = {"stride", "padding", "dilation", "groups"},
    .accepts = accepts_convolution,
    .prepare = prepare_convolution,
    .release = release_convolution,
    .launch = launch_convolution,
    .determinism = WEFT_DETERMINISM_RUN,  // parts depend on the other sizes
    .pack = pack_filters,
};

}  // namespace weft::onednn

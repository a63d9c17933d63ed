#include "backends/native/convolution_call.h"

// A body that is conv, what is added to it, and relu, by conv.strips.cpp.
namespace weft::native {

using namespace weft::backend;

extern const KernelRecord region_conv_strips = {
    .op = "region",
    .variant = "conv_strips",
    .accepts = accepts_strips,
    .prepare = prepare_strips,
    .release = release_convolution,
    .launch = launch_strips,
    .reads_all = true,
    .pack = pack_strips,
};

}  // namespace weft::native

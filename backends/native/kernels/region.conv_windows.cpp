#include "backends/native/convolution_call.h"

// A body that is conv, what is added to it, and relu, by conv.windows.cpp.
namespace weft::native {

using namespace weft::backend;

extern const KernelRecord region_conv_windows = {
    .op = "region",
    .variant = "conv_windows",
    .accepts = accepts_windows,
    .prepare = prepare_windows,
    .release = release_convolution,
    .launch = launch_windows,
    .reads_all = true,
    .rank = 1,  // as of conv
    .pack = pack_windows,
};

}  // namespace weft::native

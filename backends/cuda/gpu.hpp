#pragma once

// The runtime of a GPU under names of its own, `weft::gpu`: memory, streams, events, graphs and modules. The
// host files of this backend use these names only, so they are CUDA's, HIP's (backends/hip) and, for tests,
// those of a runtime that runs on a CPU (backends/emulated).
#if defined(WEFT_EMULATED)
#include "../emulated/runtime.hpp"
#elif defined(WEFT_HIP)
#include "../hip/vendor.hpp"
#else
#include "vendor.hpp"
#endif

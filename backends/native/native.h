#pragma once
#include "backends/native/steps.h"
#include "backends/native/tiles.h"
#include "weft/backend.hpp"

namespace weft::native {

/// The kernels of the folder kernels/.
std::vector<backend::KernelRecord> own();  // made by the build

}  // namespace weft::native

#pragma once
#include "backends/native/steps.h"
#include "weft/backend.hpp"

namespace weft::native {

/// All kernels of this folder in the order in which they are asked, and after them the shared primitives.
std::vector<backend::KernelRecord> records();

}  // namespace weft::native

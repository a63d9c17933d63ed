#pragma once
#include <string>

#include "compiler/compile.h"

namespace weft {

/// Asks the device that `backend` names (empty: this thread's default) for kernels of an op by name, one with
/// the sizes of the call, and of the largest ones where they are symbols. No device has none.
compiler::HasKernel kernels_of(const std::string& backend);

}  // namespace weft

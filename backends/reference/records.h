#pragma once
#include <vector>

#include "weft/backend.hpp"

namespace weft::reference {

/// The shared primitives. Making them is most of what a backend of the host costs to compile, so those that
/// are built in share this one copy.
std::vector<backend::KernelRecord> records();

}  // namespace weft::reference

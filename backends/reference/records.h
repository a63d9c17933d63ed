#pragma once
#include <vector>

#include "weft/backend.hpp"

namespace weft::reference {

/// The shared primitives. They take most of the compile time of a host backend, so built-in backends share
/// this copy.
std::vector<backend::KernelRecord> records();

}  // namespace weft::reference

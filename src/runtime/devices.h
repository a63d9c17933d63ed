#pragma once
#include "seam/registry.h"
#include "weft/policy.h"

namespace weft::runtime {

/// The device named `backend` (empty: the default backend), then those that `policy` may turn to, in the
/// order in which their backends were found.
Result<std::vector<seam::Device*>> devices_for(const std::string& backend, const Policy& policy);

}  // namespace weft::runtime

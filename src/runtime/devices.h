#pragma once
#include "seam/registry.h"
#include "weft/policy.h"

namespace weft::runtime {

/// The device named `backend`, or the first of a list that can be opened (empty: this thread's default), then
/// those that `policy` may turn to: the rest of the list in its order; without a list, all others.
Result<std::vector<seam::Device*>> devices_for(const std::string& backend, const Policy& policy);

}  // namespace weft::runtime

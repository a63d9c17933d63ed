#pragma once
#include "conformance/seam/candidates.h"

namespace weft::conformance {

/// Runs a case as a user would, and by each other kernel that accepts it: every answer must be right.
Found judged_by_all(CheckRun& run, Rig& rig, const PreparedCase& c);

}  // namespace weft::conformance

#pragma once
#include "conformance/seam/rig.h"

namespace weft::conformance {

/// A call by a definition that is no op of Weft's.
Result<seam::CallPtr> describe(const ir::OpDef& op, const Ask& ask);

}  // namespace weft::conformance

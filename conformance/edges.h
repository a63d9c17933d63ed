#pragma once
#include "conformance/cases.h"
#include "ir/op.h"

namespace weft::conformance {

/// Cases at the sizes where loops, vectors and blocks end, generated for each op by its kind, so new ops have
/// them too. None for ops of other kinds.
OpCases edge_cases(const ir::OpDef& op);

}  // namespace weft::conformance

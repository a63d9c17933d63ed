#pragma once
#include "conformance/cases.h"
#include "ir/op.h"

namespace weft::conformance {

/// Sizes at which loops, vectors and blocks end: made for each op by its kind, so that a new one has them
/// too. None for an op of another kind.
OpCases edge_cases(const ir::OpDef& op);

}  // namespace weft::conformance

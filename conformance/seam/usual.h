#pragma once
#include "conformance/seam/rig.h"

// What the checks of the seam share: ordinary calls with exact answers, and how an answer is compared.
namespace weft::conformance {

/// What is wrong; empty: nothing.
using Finding = std::string;

/// Runs `ask` there and by the oracle; every value is exact, so the bits must be equal.
Finding differs(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, const char* what);
Finding differs(Rig& rig, const Ask& ask, const char* what);
/// Calls that cover a kernel's usual habits: broadcasts, reductions, movement, an index.
std::vector<Ask> usual_calls();
/// A case's name: "add f32[3, 5], f32[3, 5]".
std::string title(const Ask& ask);

}  // namespace weft::conformance

#pragma once
#include "conformance/seam/rig.h"

// Shared by the checks of the seam: ordinary calls with exact answers, and their comparison.
namespace weft::conformance {

/// What is wrong; empty if nothing.
using Finding = std::string;

/// Runs `ask` on the rig and by the oracle; every value is exact, so the bits must be equal.
Finding differs(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, const char* what);
Finding differs(Rig& rig, const Ask& ask, const char* what);
/// Calls that cover the usual kinds of kernels: broadcasts, reductions, movement, an index.
std::vector<Ask> usual_calls();
/// Normal numbers of a seed: their sums depend on the order in which they are added.
HostTensor noise(IntList shape, uint64_t seed, DType dtype = DType::f32);
/// A case's name: "add f32[3, 5], f32[3, 5]".
std::string title(const Ask& ask);

}  // namespace weft::conformance

#pragma once
#include "conformance/prepared.h"
#include "conformance/seam/rig.h"

// All kernels of a backend for a call, not only the one that it would choose.
namespace weft::conformance {

/// The call of a case, as passed to the seam.
Ask ask_of(const PreparedCase& c);
/// An operand, as passed to the seam.
HostTensor host_tensor(const Array& a);

struct Candidates {
  std::vector<seam::PreparedPtr> plans;  ///< of each kernel that accepts, in order of preference
  std::string refusals;                  ///< of the others
};
Candidates candidates_of(Rig& rig, const Ask& ask);

}  // namespace weft::conformance

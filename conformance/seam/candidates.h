#pragma once
#include "conformance/prepared.h"
#include "conformance/seam/rig.h"

// Every kernel that a backend has for a call, not only the one that it would choose.
namespace weft::conformance {

/// The call of a case, as the seam is asked it.
Ask ask_of(const PreparedCase& c);
/// An operand as the seam is given it.
HostTensor host_tensor(const Array& a);

struct Candidates {
  std::vector<seam::PreparedPtr> plans;  ///< of each kernel that accepts, in order of preference
  std::string refusals;                  ///< of the others
};
Candidates candidates_of(Rig& rig, const Ask& ask);

}  // namespace weft::conformance

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
/// Whether the plan promises equal bits each time. If not, it becomes the kernel's plan for calls that ask
/// for them; false if there is none.
bool gives_equal_bits(Rig& rig, const Ask& ask, seam::PreparedPtr& plan);

}  // namespace weft::conformance

#pragma once
#include "seam/call.h"

namespace weft::conformance {

/// The same call with one attribute, the `which`-th, at the op's default. Null if that is the same call, or
/// one with results of other types, with which a kernel would leave its memory.
seam::CallPtr with_default_attribute(const weft_call& call, uint64_t which);

}  // namespace weft::conformance

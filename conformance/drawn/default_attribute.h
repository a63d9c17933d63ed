#pragma once
#include "seam/call.h"

namespace weft::conformance {

/// The same call with one attribute, the `which`-th in turn, at the op's default. Null where that is no call
/// with results of the same types, or the same call: a kernel that is asked this instead stays in its memory.
seam::CallPtr with_default_attribute(const weft_call& call, uint64_t which);

}  // namespace weft::conformance

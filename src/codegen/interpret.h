#pragma once
#include <span>

#include "codegen/loop_kernel.h"
#include "weft/status.h"

namespace weft::codegen {

/// Host memory for a buffer of a kernel: `elements` of the buffer's dtype.
struct HostBuffer {
  void* data;
  int64_t elements;
};

/// Runs every work item of a verified kernel, one after another, and those of a group from barrier to
/// barrier. Slow; the reference for rendered text. Items that use one shared element between two barriers,
/// one of them to write it, are an error, and so is a shared element that is read before it is written.
/// Floats are computed in double (narrower values are rounded as the type says). An access outside a
/// buffer, a missing buffer or scalar, and an index divided by zero are errors.
Status interpret(const LoopKernel& kernel, std::span<const HostBuffer> buffers,
                 std::span<const int32_t> scalars);

}  // namespace weft::codegen

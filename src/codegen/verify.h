#pragma once
#include "codegen/loop_kernel.h"
#include "weft/status.h"

namespace weft::codegen {

/// Checks that `kernel` is well formed: operands defined before use and in scope (the index of a loop only
/// inside it), operand types that the operation takes, existing buffers and scalars, loops that nest and
/// close, at least one store. Errors name the node.
Status verify(const LoopKernel& kernel);

}  // namespace weft::codegen

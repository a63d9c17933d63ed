#pragma once
#include "codegen/loop_kernel.h"
#include "weft/status.h"

namespace weft::codegen {

/// Says whether `kernel` has a meaning: operands defined before use and still in scope (the index of a loop
/// only inside it), operand types that the operation takes, buffers and scalars that exist, loops that nest
/// and close, at least one store. Errors name the node.
Status verify(const LoopKernel& kernel);

}  // namespace weft::codegen

#pragma once
#include "codegen/loop_kernel.h"
#include "loops/form.h"

namespace weft::loops {

/// A tensor that a stage binds: an operand or a result of the call, or a piece of its workspace.
struct Bound {
  enum class Kind : uint8_t { input, output, scratch } kind;
  uint32_t index = 0;  ///< of the input or the output
  DType dtype = DType::f32;
  uint64_t offset = 0;  ///< of the piece, in bytes
};

/// One dispatch of a call whose sizes are known: nothing about it is left to decide at launch.
struct Stage {
  codegen::LoopKernel kernel;
  std::vector<Bound> buffers;
  Scalars scalars;  ///< [0]: items, or groups
};

/// The dispatches of a call, in order, and the workspace that they share.
struct Stages {
  std::vector<Stage> list;
  uint64_t workspace = 0;
  uint32_t determinism = WEFT_DETERMINISM_THREADS;
};

}  // namespace weft::loops

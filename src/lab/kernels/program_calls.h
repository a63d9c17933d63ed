#pragma once
#include <string>
#include <vector>

#include "lab/kernels/operation.h"
#include "program/program.h"
#include "runtime/session.h"

namespace weft::lab {

/// The calls of a program that the lab can compare kernels on.
struct ProgramCalls {
  std::vector<Operation> operations;  ///< each once; `where` says how many calls are alike
  size_t left_out = 0;                ///< calls of ops that have a body of their own, or take integers
};

/// Of a program run with these inputs. Floats are drawn anew; nobody knows which integers an op takes, so
/// calls with such operands are left out, and so is what the compiler fused, which is no op.
Result<ProgramCalls> operations_of_program(const program::CompiledProgram& program,
                                           std::span<const runtime::HostTensor> inputs);

}  // namespace weft::lab

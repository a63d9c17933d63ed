#pragma once
#include "link/execution_plan.h"
#include "link/flat.h"

namespace weft::link {

/// Gives every value a slot on each device that reads it, and puts the calls into steps with the copies
/// between devices that they need. States have their home on the first device, weights on every device that
/// reads them; inputs and outputs are on the first.
Result<ExecutionPlan> order(const program::CompiledProgram& program, FlatProgram flat,
                            std::span<seam::Device* const> devices);

}  // namespace weft::link

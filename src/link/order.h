#pragma once
#include "link/flat.h"
#include "link/schedule.h"

namespace weft::link {

/// Gives every value a slot on each device that reads it, and puts the calls into steps with the copies
/// between devices that they need. States have their home on the first device, weights on every device that
/// reads them; inputs and outputs are on the first.
Result<Schedule> order(const program::CompiledProgram& program, FlatProgram flat,
                       std::span<seam::Device* const> devices);

}  // namespace weft::link

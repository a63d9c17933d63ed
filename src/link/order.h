#pragma once
#include "link/flat.h"
#include "link/schedule.h"

namespace weft::link {

/// Gives every value a slot on each device that reads it, and turns calls into steps, with copies between
/// devices. States, inputs and outputs are on the first device, weights on every device that reads them.
Result<Schedule> order(const program::CompiledProgram& program, FlatProgram flat,
                       std::span<seam::Device* const> devices);

}  // namespace weft::link

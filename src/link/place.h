#pragma once
#include <span>

#include "link/flat.h"
#include "link/schedule.h"
#include "weft/policy.h"

namespace weft::link {

/// Chooses a kernel for every call of the program: on devices[0] by the op's name, then for its body; a call
/// that is refused there is opened (open.h) or goes to the next device, as far as `policy` allows. Calls that
/// are equal share one prepared. An error lists every refusal and names the node.
/// With `known`, the choices that were made for other sizes, nothing is chosen: Code::unsupported where one
/// of them does not hold for these sizes.
Result<FlatProgram> place(const program::CompiledProgram& program, const Bindings& bindings,
                          std::span<seam::Device* const> devices, const Policy& policy,
                          const Packings& packings, const std::vector<Choice>* known = nullptr);

}  // namespace weft::link

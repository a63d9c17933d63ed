#pragma once
#include <span>

#include "link/flat.h"
#include "link/schedule.h"
#include "weft/policy.h"

namespace weft::link {

/// By weight: whether it may be packed. One that calls of several ops read, such as a tied embedding, may
/// not: there would be two copies.
std::vector<bool> packable_weights(const program::CompiledProgram& program);

/// Selects a kernel for every call of the program: on devices[0] by the op's name, then for its body. A call
/// that is refused there is replaced by its body (open.h) or goes to the next device, as far as `policy`
/// allows. Equal calls share a prepared kernel. An error lists all calls that nobody takes, with every
/// refusal and the node. With `known`, the choices for other sizes, those are repeated: Code::unsupported
/// where one does not hold for these sizes.
Result<FlatProgram> place(const program::CompiledProgram& program, const Bindings& bindings,
                          std::span<seam::Device* const> devices, const Policy& policy,
                          const Packings& packings, const std::vector<Choice>* known = nullptr);

}  // namespace weft::link

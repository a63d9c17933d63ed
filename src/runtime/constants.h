#pragma once
#include "runtime/session.h"

namespace weft::runtime {

/// What a recipe (link/recipe.h) makes on the first device, by output: from the weight store, or by running
/// the recipe, once for all sessions that are open.
Result<std::vector<WeightStore::Ref>> make_constants(std::shared_ptr<const program::CompiledProgram> recipe,
                                                     const std::vector<seam::Device*>& devices,
                                                     const Policy& policy);

}  // namespace weft::runtime

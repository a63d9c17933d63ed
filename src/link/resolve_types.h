#pragma once
#include "program/program.h"
#include "seam/call.h"

namespace weft::link {

/// A program's calls with the symbols' values put in.
Result<seam::ConcreteType> concrete(const program::TensorSpec& spec, const Bindings& bindings);
Result<seam::CallDesc> describe(const program::KernelCall& call,
                                const std::vector<seam::ConcreteType>& values, const Bindings& bindings);
Result<std::shared_ptr<const seam::RegionDesc>> describe(const program::Region& region,
                                                         const Bindings& bindings);

}  // namespace weft::link

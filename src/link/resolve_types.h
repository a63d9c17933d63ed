#pragma once
#include "program/program.h"
#include "seam/call.h"

namespace weft::link {

/// A program's calls with the symbols' values put in.
Result<seam::ConcreteType> concrete(const program::TensorSpec& spec, const Bindings& bindings);
Result<seam::CallDesc> describe(const program::KernelCall& call,
                                const std::vector<seam::ConcreteType>& values, const Bindings& bindings);

/// The bodies of a program, each described when it is first asked for.
class Bodies {
 public:
  using Body = std::shared_ptr<const seam::RegionDesc>;
  Bodies(const program::CompiledProgram& program, const Bindings& bindings)
      : program_(program), bindings_(bindings), known_(program.regions.size()) {}
  /// Of a call; null for region -1.
  Result<Body> of(int32_t region);

 private:
  Result<Body> described(const program::Region& region);

  const program::CompiledProgram& program_;
  const Bindings& bindings_;
  std::vector<Body> known_;
};

}  // namespace weft::link

#pragma once
#include <optional>

#include "link/flat.h"

namespace weft::link {

/// One step of an opened body. Without a `call` it copies its operand to its result.
struct OpenStep {
  std::optional<seam::CallDesc> call;
  Ids inputs, outputs;
};

/// The body of a call in place of the call: its steps in order, over `program`'s values. Values between the
/// steps are added; a result that updates an operand is written straight into the operand's memory when
/// everything that reads the old value has run by then, and is copied there at the end otherwise.
std::vector<OpenStep> open(FlatProgram& program, const seam::CallDesc& call, const Ids& inputs,
                           const Ids& outputs);

}  // namespace weft::link

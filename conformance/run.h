#pragma once
#include "conformance/bounds.h"
#include "conformance/inputs.h"
#include "weft/ledger.h"

namespace weft::conformance {

/// What one call on one backend gave: results, or the reason of a refusal. Anything else raises.
struct Outcome {
  std::vector<Array> outputs;
  std::string refused;
  std::vector<LedgerRow> ledger;  ///< what ran for it
};

/// What the op would give for these operands; the shape rule's error where they are none of its.
Result<std::vector<TensorType>> infer_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                         const std::vector<Array>& inputs);

/// Runs an op on copies of `inputs`. The memory that the results get is filled with 0xff before: what a
/// kernel does not write is a NaN, or -1.
Outcome run_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs, const std::vector<Array>& inputs,
               const std::string& backend);

/// Every backend that computes here. Plug-ins that the build made (`<folder>/far.so`, `<folder>/template.so`)
/// are loaded first.
std::vector<std::string> computing_backends(const std::string& plugin_folder);

/// An answer that a broken kernel may give, and whether the right one happens to be the same.
struct Fault {
  const char* name;
  Array output;
  bool same = false;  ///< it is the right answer, bit for bit
};
/// Zero, constant, copied input, shifted by one, stale.
std::vector<Fault> planted_faults(const Bounded& right, const std::vector<Array>& inputs, const Array& stale);

}  // namespace weft::conformance

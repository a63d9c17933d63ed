#pragma once
#include "conformance/bounds.h"
#include "conformance/inputs.h"
#include "weft/ledger.h"

namespace weft::conformance {

/// The outcome of one call on one backend: results, or the reason of a refusal. Anything else raises.
struct Outcome {
  std::vector<Array> outputs;
  std::string refused;
  std::vector<LedgerRow> ledger;  ///< what ran for it
};

/// The result types for these operands; the shape rule's error if it refuses them.
Result<std::vector<TensorType>> infer_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                         const std::vector<Array>& inputs);

/// Runs an op on copies of `inputs`. The memory of the results is filled with 0xff before: elements that a
/// kernel does not write are NaN, or -1.
Outcome run_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs, const std::vector<Array>& inputs,
               const std::string& backend);

/// Every backend that computes on this machine. Loads the plug-ins of the build (`<folder>/far.so`,
/// `<folder>/template.so`) first.
std::vector<std::string> computing_backends(const std::string& plugin_folder);

/// An answer of a broken kernel, and whether it happens to be right.
struct Fault {
  const char* name;
  Array output;
  bool same = false;  ///< it is the right answer, bit for bit
};
/// Zero, constant, copied input, shifted by one, stale.
std::vector<Fault> planted_faults(const Bounded& right, const std::vector<Array>& inputs, const Array& stale);

}  // namespace weft::conformance

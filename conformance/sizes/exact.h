#pragma once
#include "conformance/seam/candidates.h"
#include "conformance/sizes/data.h"

// Calls too large for the oracle, on operands for which `reference` gives the exact answer; smaller calls
// check `reference` itself by the oracle.
namespace weft::conformance {

/// A call with drawn operands.
Ask exact_ask(const DrawnCall& call, Random& random);

/// Whether large answers of this op can be compared: true for primitives whose answers on such operands are
/// exact or within one rounding of an element.
bool is_comparable(const ir::OpDef& op);

/// The first element that differs: by more than one rounding, if the op rounds; even in the sign of a zero,
/// if it only moves elements. Empty if none.
std::string other_number(const ir::OpDef& op, const HostTensor& got, const HostTensor& want);

/// Calls `f` with drawn calls of each selected op, until its `cases` or `seconds` are used up.
struct LargeCalls {
  uint64_t cases;
  double seconds;
  int64_t least, most;  ///< elements, about
  bool (*of)(const ir::OpDef&) = is_comparable;
};
void each_large_call(CheckRun& run, uint64_t claimed, const LargeCalls& which,
                     const std::function<void(const std::string& label, const DrawnCall&, Random&)>& f);

}  // namespace weft::conformance

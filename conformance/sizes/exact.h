#pragma once
#include "conformance/seam/candidates.h"
#include "conformance/sizes/data.h"

// Calls that are too large for the oracle, on operands whose right answer `reference` gives to the last bit:
// it is judged by the oracle where that can be done.
namespace weft::conformance {

/// What a call with drawn operands is asked as.
Ask exact_ask(const DrawnCall& call, Random& random);

/// Can large answers of this op be compared at all? Primitives whose answers are exact on such operands, or
/// one rounding of an element away.
bool is_comparable(const ir::OpDef& op);

/// The first element that is another number: beyond what rounding may do to one element each, where the op
/// rounds, or by the sign of a zero, where it only moves. Empty: none.
std::string other_number(const ir::OpDef& op, const HostTensor& got, const HostTensor& want);

/// Calls `f` with drawn calls of each op of the kind that the run wants, until `cases` or `seconds` are used
/// up for it.
struct LargeCalls {
  uint64_t cases;
  double seconds;
  int64_t least, most;  ///< elements, about
  bool (*of)(const ir::OpDef&) = is_comparable;
};
void each_large_call(CheckRun& run, uint64_t claimed, const LargeCalls& which,
                     const std::function<void(const std::string& label, const DrawnCall&, Random&)>& f);

}  // namespace weft::conformance

#pragma once
#include <functional>

#include "conformance/bounds.h"
#include "conformance/inputs.h"

namespace weft::conformance {

/// One case of an op in one dtype, with its right answer.
struct PreparedCase {
  const ir::OpDef& op;
  DType dtype;  ///< that the suite tries
  std::vector<AttrValue> attrs;
  std::vector<Array> inputs;
  std::vector<Bounded> right;
  std::string label;  ///< "add f32 [3, 5] [5] (broadcast)"
};

/// Calls `f` with each case of the op in every dtype that takes it. `wanted` is asked with the label before
/// the right answer is worked out. Raises where a case's answer can't be worked out.
void each_case(const ir::OpDef& op, const OpCases& cases,
               const std::function<bool(const std::string&)>& wanted,
               const std::function<void(const PreparedCase&)>& f);
/// The op of a file of cases; raises where there is none.
const ir::OpDef& op_of(const CaseFile& file);

}  // namespace weft::conformance

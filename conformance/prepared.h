#pragma once
#include <functional>

#include "conformance/bounds.h"
#include "conformance/check.h"
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
/// A refusal is an answer only where the device does not claim to have all of the case's dtypes.
Found judged_refusal(const PreparedCase& c, const std::string& backend, const std::string& refused);

/// While it lives, right answers stay in memory: working them out costs far more than the kernels do, and who
/// holds many backends to the same cases asks for them again and again. The largest are still made anew.
class KeptAnswers {
 public:
  KeptAnswers();
  ~KeptAnswers();
  KeptAnswers(const KeptAnswers&) = delete;
};

/// The op of a file of cases; raises where there is none.
const ir::OpDef& op_of(const CaseFile& file);

}  // namespace weft::conformance

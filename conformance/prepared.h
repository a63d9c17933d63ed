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

/// Calls `f` with each case of the op in every dtype that takes it. Calls `wanted` with the label before
/// computing the right answer. Raises if the answer can't be computed.
void each_case(const ir::OpDef& op, const OpCases& cases,
               const std::function<bool(const std::string&)>& wanted,
               const std::function<void(const PreparedCase&)>& f);
/// A refusal passes only if the device does not claim all of the case's dtypes.
Found judged_refusal(const PreparedCase& c, const std::string& backend, const std::string& refused);

/// While it lives, right answers are cached: computing them costs far more than the kernels, and checking
/// many backends needs the same ones again. The largest are not cached.
class KeptAnswers {
 public:
  KeptAnswers();
  ~KeptAnswers();
  KeptAnswers(const KeptAnswers&) = delete;
};

/// The op of a file of cases; raises if there is none.
const ir::OpDef& op_of(const CaseFile& file);

}  // namespace weft::conformance

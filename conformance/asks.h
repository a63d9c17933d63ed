#pragma once
#include "conformance/prepared.h"
#include "conformance/seam/rig.h"

namespace weft::conformance {

/// Each of the cases in every dtype that the op's shape rule takes, as a call through the seam: for checks
/// that need no right answer, which would cost more than all else. The operands are those of each_case, so
/// what is wrong here is judged there too.
std::vector<Ask> asks_of(const ir::OpDef& op, const OpCases& cases);

/// What is wrong with the results that the call of a case gave; empty: nothing.
std::string judged(const PreparedCase& c, const Rig::Run& ran);

}  // namespace weft::conformance

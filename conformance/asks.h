#pragma once
#include "conformance/prepared.h"
#include "conformance/seam/rig.h"

namespace weft::conformance {

/// Each case in every dtype that the op's shape rule takes, as a call through the seam, without the expensive
/// right answer. The operands are those of each_case, which judges them.
std::vector<Ask> asks_of(const ir::OpDef& op, const OpCases& cases);

/// What is wrong with the results of a case's call; empty if nothing.
std::string judged(const PreparedCase& c, const Rig::Run& ran);

}  // namespace weft::conformance

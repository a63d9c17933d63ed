#pragma once
#include "conformance/cases.h"
#include "conformance/numbers.h"

namespace weft::conformance {

/// The operands of a case in `t`, the same on every machine: floats rounded to their dtype, integers
/// saturated.
std::vector<Array> make_inputs(const Case& c, DType t, uint64_t seed);
/// Does any operand take the dtype that the suite tries?
bool has_free_dtype(const Case& c);

}  // namespace weft::conformance

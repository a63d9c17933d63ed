#pragma once
#include "conformance/seam/rig.h"
#include "conformance/sizes/draw.h"

namespace weft::conformance {

/// What the numbers of an operand are like, whatever its size.
enum class Data : uint8_t {
  normal,
  integers,
  ties,
  equal,
  sorted,
  negative,
  specials,
  magnitudes,
  every_bit
};
inline constexpr int kDataKinds = 9;
const char* name(Data kind);

/// The operands of a drawn call. Positions lie inside their axis, with duplicates; an operand that its case
/// gives a range or a list keeps it. `specials` sprinkles NaN, infinities, zeros of both signs and subnormals
/// among others; `magnitudes` are far apart, the largest number among them, and none infinite: what both
/// together add up to depends on the order. `every_bit` is any integer of the dtype, or a special.
std::vector<Array> draw_operands(const DrawnCall& call, Data kind, Random& random);

/// Operands for which the order of additions makes no difference: small whole numbers as floats, any
/// integers, and for ops that only move elements, any bits.
std::vector<HostTensor> draw_exact_operands(const DrawnCall& call, Random& random);

/// Is every right answer to such operands the same number? Else up to the roundings of one element, or, for a
/// composite op, up to nobody knows.
bool is_exact(const ir::OpDef& op);

}  // namespace weft::conformance

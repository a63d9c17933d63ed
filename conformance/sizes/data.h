#pragma once
#include "conformance/seam/rig.h"
#include "conformance/sizes/draw.h"

namespace weft::conformance {

/// The kind of numbers in an operand.
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

/// The operands of a drawn call. Positions are inside their axis, with duplicates; operands with a range or a
/// list in their case keep it. `specials` mixes in NaN, infinities, zeros of both signs and subnormals;
/// `magnitudes` differ widely, up to the largest finite number (not both at once: the sum would depend on the
/// order). `every_bit` is any integer of the dtype, or a special.
std::vector<Array> draw_operands(const DrawnCall& call, Data kind, Random& random);

/// Operands for which the order of additions does not matter: small integers as floats, any integers, and for
/// ops that only move elements, any bits.
std::vector<HostTensor> draw_exact_operands(const DrawnCall& call, Random& random);

/// Whether every right answer to such operands is the same number. If not, it may differ by one element's
/// rounding, or, for a composite op, by an unknown amount.
bool is_exact(const ir::OpDef& op);

}  // namespace weft::conformance

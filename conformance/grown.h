#pragma once
#include "conformance/cases.h"
#include "conformance/numbers.h"
#include "conformance/seam/rig.h"
#include "ir/op.h"

namespace weft::conformance {

/// The case with each dimension above four multiplied by `factor`; none if its operands are listed value by
/// value. The op's shape rule may refuse it.
std::optional<Case> grown(const Case& c, int64_t factor);

/// Up to `most` calls of an op, drawn from its cases, the sizes at which loops end, and its cases at eight
/// times their size; without the expensive right answers.
std::vector<Ask> drawn_asks(const ir::OpDef& op, const OpCases& cases, size_t most, Random& random);

/// The same call with other data in one operand: its elements in another order, or one element changed, by
/// `variant`, 0 to 2. None if that would be the same data.
std::optional<HostTensor> other_data(const HostTensor& t, int variant, Random& random);

}  // namespace weft::conformance

#pragma once
#include "conformance/cases.h"
#include "conformance/numbers.h"
#include "conformance/seam/rig.h"
#include "ir/op.h"

namespace weft::conformance {

/// The case with `factor` times as many elements along each dimension of more than four; none where its
/// operands are listed value by value. Whether the op takes it is for its shape rule to say.
std::optional<Case> grown(const Case& c, int64_t factor);

/// Up to `most` calls of an op, drawn from its cases, from the sizes at which loops end, and from its cases
/// at eight times their size: without right answers, which would cost more than all else.
std::vector<Ask> drawn_asks(const ir::OpDef& op, const OpCases& cases, size_t most, Random& random);

/// The same call with other data in one operand: its elements in another order, or one of them another
/// number. Which, `variant` says; 0 to 2. None where that would be the same data.
std::optional<HostTensor> other_data(const HostTensor& t, int variant, Random& random);

}  // namespace weft::conformance

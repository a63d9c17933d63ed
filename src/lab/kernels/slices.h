#pragma once
#include <vector>

#include "conformance/bounds.h"
#include "lab/kernels/operation.h"

// A few rows of a large call, as a small call of the same op.
namespace weft::lab {

using conformance::HostTensor;

/// The elements with these positions along each axis; where a list is empty, all of that axis.
using Positions = std::vector<std::vector<int64_t>>;
conformance::Array take(const seam::ConcreteType& type, std::span<const std::byte> bytes,
                        const Positions& positions);

/// Which blocks along each of the operation's directions are looked at.
struct Slice {
  std::vector<std::vector<int64_t>> along;  ///< by Operation::rows

  Positions of_operand(const Operation& o, size_t operand, size_t rank) const;
  Positions of_results(const Operation& o, size_t rank) const;
};

/// The indices of element `flat` among these positions of a tensor.
std::vector<int64_t> indices_of(size_t flat, const IntList& shape, const Positions& positions);

/// The slice of the blocks that one element of a result lies in; along the directions that the result does
/// not have, those of `slice`.
Slice around(const Operation& o, const Slice& slice, const std::vector<int64_t>& at);

/// Positions that `seed` draws, as many as the oracle works out in
/// about this many seconds, and at least one a direction. `results` is the first result's shape.
Slice draw_slice(const Operation& o, const IntList& results, double oracle_seconds, uint64_t seed);

/// One block along each direction: that of this element of the operand where the operand falls apart along
/// it, else one that `seed` draws. `of_operand` and `results` are shapes.
Slice slice_of_element(const Operation& o, size_t operand, const IntList& of_operand, uint64_t element,
                       const IntList& results, uint64_t seed);

/// The oracle's time for a slice, about.
double oracle_time(const Operation& o, const Slice& slice);

/// Truth and bounds of the slice's results.
Result<std::vector<conformance::Bounded>> truth_of(const Operation& o,
                                                   const std::vector<conformance::Array>& sliced);

}  // namespace weft::lab

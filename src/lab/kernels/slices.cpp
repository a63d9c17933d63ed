#include "lab/kernels/slices.h"

#include <algorithm>
#include <set>

#include "base/element.h"
#include "conformance/sizes/work.h"
#include "weft/random.h"

namespace weft::lab {
namespace {

using conformance::Array;
using conformance::Real;

constexpr int64_t kMostPositions = 16;

Real element(DType t, const std::byte* data, size_t i) {
  if (t == DType::i64) return static_cast<Real>(load_element<int64_t>(t, data, i));
  return static_cast<Real>(load_element<double>(t, data, i));
}

std::vector<int64_t> draw_positions(int64_t size, int64_t count, uint64_t seed) {
  std::set<int64_t> drawn;
  for (uint64_t n = 0; std::ssize(drawn) < std::min(size, count); ++n)
    drawn.insert(static_cast<int64_t>(random_word(seed, n) % static_cast<uint64_t>(size)));
  return {drawn.begin(), drawn.end()};
}

// The oracle's seconds for a slice of these sizes.
double seconds_for(const Operation& o, const Slice& slice) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < o.call.inputs.size(); ++i) {
    const auto& input = o.call.inputs[i];
    conformance::Dims shape = input.shape;
    const auto positions = slice.of_operand(o, i, shape.size());
    for (size_t d = 0; d < shape.size(); ++d)
      if (!positions[d].empty()) shape[d] = std::ssize(positions[d]);
    types.push_back({input.dtype.value_or(o.dtype), to_shape(shape)});
  }
  const auto attrs = value_or_raise(ir::order_attrs(o.definition(), o.call.attrs));
  return 1e-7 * conformance::oracle_work(value_or_raise(conformance::graph_of(o.definition(), attrs, types)));
}

}  // namespace

Array take(const seam::ConcreteType& type, std::span<const std::byte> bytes, const Positions& positions) {
  const size_t rank = type.shape.size();
  Array a{type.dtype, {}, {}};
  for (size_t d = 0; d < rank; ++d)
    a.shape.push_back(positions[d].empty() ? type.shape[d] : std::ssize(positions[d]));
  const auto n = static_cast<size_t>(conformance::count(a.shape));
  std::vector<int64_t> at(rank, 0);
  for (size_t k = 0; k < n; ++k) {
    int64_t flat = 0;
    for (size_t d = 0; d < rank; ++d)
      flat = flat * type.shape[d] + (positions[d].empty() ? at[d] : positions[d][static_cast<size_t>(at[d])]);
    a.v.push_back(element(type.dtype, bytes.data(), static_cast<size_t>(flat)));
    for (size_t d = rank; d-- > 0 && ++at[d] == a.shape[d];) at[d] = 0;
  }
  return a;
}

Positions Slice::of_operand(const Operation& o, size_t operand, size_t rank) const {
  Positions p(rank);
  for (size_t r = 0; r < along.size(); ++r)
    if (const int axis = o.rows[r].operands.at(operand); axis >= 0) p[static_cast<size_t>(axis)] = along[r];
  return p;
}

Positions Slice::of_results(const Operation& o, size_t rank) const {
  Positions p(rank);
  for (size_t r = 0; r < along.size(); ++r)
    if (const auto axis = static_cast<size_t>(o.rows[r].results); axis < rank) p[axis] = along[r];
  return p;
}

Slice draw_slice(const Operation& o, const IntList& results, double oracle_seconds, uint64_t seed) {
  for (int64_t count = kMostPositions;; count /= 2) {
    Slice slice;
    for (const auto& rows : o.rows)
      slice.along.push_back(draw_positions(results[static_cast<size_t>(rows.results)], count, seed++));
    if (count == 1 || seconds_for(o, slice) <= oracle_seconds) return slice;
  }
}

Result<std::vector<conformance::Bounded>> truth_of(const Operation& o, const std::vector<Array>& sliced) {
  WEFT_TRY(const auto attrs, ir::order_attrs(o.definition(), o.call.attrs));
  return conformance::bound_op(o.definition(), attrs, sliced);
}

}  // namespace weft::lab

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

int64_t blocks_of(const Rows& rows, const IntList& results) {
  return results[static_cast<size_t>(rows.results)] / rows.result_block;
}

int64_t operand_block(const Rows& rows, size_t operand) {
  return rows.operand_blocks.empty() ? 1 : rows.operand_blocks.at(operand);
}

// The positions of these blocks, of `block` elements each.
std::vector<int64_t> positions_of(const std::vector<int64_t>& blocks, int64_t block) {
  std::vector<int64_t> positions;
  for (const int64_t b : blocks)
    for (int64_t i = 0; i < block; ++i) positions.push_back(b * block + i);
  return positions;
}

}  // namespace

double oracle_time(const Operation& o, const Slice& slice) {
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
  // Of an element of a primitive: those of a row of softmax with 50,257 columns took 0.12 s.
  return 4e-7 * conformance::oracle_work(value_or_raise(conformance::graph_of(o.definition(), attrs, types)));
}

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
    if (const int axis = o.rows[r].operands.at(operand); axis >= 0)
      p[static_cast<size_t>(axis)] = positions_of(along[r], operand_block(o.rows[r], operand));
  return p;
}

Positions Slice::of_results(const Operation& o, size_t rank) const {
  Positions p(rank);
  for (size_t r = 0; r < along.size(); ++r)
    if (const auto axis = static_cast<size_t>(o.rows[r].results); axis < rank)
      p[axis] = positions_of(along[r], o.rows[r].result_block);
  return p;
}

std::vector<int64_t> indices_of(size_t flat, const IntList& shape, const Positions& positions) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const auto size = static_cast<size_t>(positions[d].empty() ? shape[d] : std::ssize(positions[d]));
    at[d] = positions[d].empty() ? static_cast<int64_t>(flat % size) : positions[d][flat % size];
    flat /= size;
  }
  return at;
}

Slice around(const Operation& o, const Slice& slice, const std::vector<int64_t>& at) {
  Slice one = slice;
  for (size_t r = 0; r < o.rows.size(); ++r)
    if (const auto axis = static_cast<size_t>(o.rows[r].results); axis < at.size())
      one.along[r] = {at[axis] / o.rows[r].result_block};
  return one;
}

Slice draw_slice(const Operation& o, const IntList& results, double oracle_seconds, uint64_t seed) {
  for (int64_t count = kMostPositions;; count /= 2) {
    Slice slice;
    for (const auto& rows : o.rows)
      slice.along.push_back(draw_positions(blocks_of(rows, results), count, seed++));
    if (count == 1 || oracle_time(o, slice) <= oracle_seconds) return slice;
  }
}

Slice slice_of_element(const Operation& o, size_t operand, const IntList& of_operand, uint64_t element,
                       const IntList& results, uint64_t seed) {
  Slice slice;
  for (const auto& rows : o.rows) {
    const int axis = rows.operands.at(operand);
    if (axis < 0) {
      slice.along.push_back(draw_positions(blocks_of(rows, results), 1, seed++));
      continue;
    }
    uint64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < of_operand.size(); ++d)
      inner *= static_cast<uint64_t>(of_operand[d]);
    const auto at = static_cast<int64_t>(element / inner) % of_operand[static_cast<size_t>(axis)];
    slice.along.push_back({at / operand_block(rows, operand)});
  }
  return slice;
}

Result<std::vector<conformance::Bounded>> truth_of(const Operation& o, const std::vector<Array>& sliced) {
  WEFT_TRY(const auto attrs, ir::order_attrs(o.definition(), o.call.attrs));
  return conformance::bound_op(o.definition(), attrs, sliced);
}

}  // namespace weft::lab

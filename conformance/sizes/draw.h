#pragma once
#include <optional>
#include <string>

#include "conformance/cases.h"
#include "conformance/numbers.h"
#include "ir/op.h"

// Random calls of every op: sizes are log-uniform, and such that faults at the limits of blocks, counters and
// axes can show.
namespace weft::conformance {

/// A call whose operands have no elements yet; `like` says how to fill each.
struct DrawnCall {
  const ir::OpDef* op = nullptr;
  DType dtype = DType::f32;  ///< of the operands that have no dtype of their own
  std::vector<Input> like;
  std::vector<AttrValue> attrs;     ///< settled, in the order of the op's fields
  std::vector<TensorType> results;  ///< by the shape rule
  int64_t elements = 0;             ///< of all operands and results

  DType dtype_of(size_t input) const { return like[input].dtype.value_or(dtype); }
  /// "f32 [129, 300] axes=[1]"
  std::string text() const;
};

/// The random numbers for call `index` of an op, independent of other calls.
Random random_for(uint64_t seed, const ir::OpDef& op, uint64_t index);
int64_t log_uniform(Random& random, int64_t low, int64_t high);

/// A shape of this rank with at most `most` elements: one long axis among short ones, all of them above 128,
/// or each log-uniform; often at or next to a multiple of a power of two.
Dims draw_shape(Random& random, int rank, int64_t most);

/// Dtypes are those of `claimed`. None if no draw is a valid call of the op.
std::optional<DrawnCall> draw_call(const ir::OpDef& op, const OpCases& written, uint64_t claimed,
                                   Random& random, int64_t most);

/// The operand whose values are positions, and the number of positions.
struct Positions {
  size_t input;
  int64_t count;
};
bool takes_positions(const ir::OpDef& op);
/// None if the op takes none, or this call.
std::optional<Positions> positions_of(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                      const std::vector<Input>& inputs);

}  // namespace weft::conformance

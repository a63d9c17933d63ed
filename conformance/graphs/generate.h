#pragma once
#include <array>

#include "conformance/bounds.h"
#include "ir/graph.h"

// Random graphs. Every op of the folder takes part with its own cases, so new ops need no edit here.
namespace weft::conformance {

/// A graph is run on two sets of numbers in turn, so leftovers of the first run can't pass as answers of the
/// second.
inline constexpr size_t kDataSets = 2;

/// A graph, and the truth and bound of every value in each set. Inputs, states and weights are exact: a run
/// begins with them.
struct GraphCase {
  uint64_t seed = 0;
  bool fuse = true;  ///< compiled so
  ir::Graph graph;
  std::array<std::vector<Bounded>, kDataSets> values;  ///< by set and value id
};

/// The graph of a seed, the same on every machine. A node is accepted only if its results are finite, of
/// modest size and have relatively small bounds. So no wrong answer passes, and no right one depends on how a
/// tie was rounded.
GraphCase random_graph(uint64_t seed);

/// Finite, of modest size, with a small bound; exact for integers.
bool is_sure(const Bounded& b);

/// Truth and bounds of one call's results, in each set; null operands are absent.
using OperandSets = std::array<std::vector<const Bounded*>, kDataSets>;
Result<std::array<std::vector<Bounded>, kDataSets>> bound_call(const ir::OpDef& op,
                                                               const std::vector<AttrValue>& attrs,
                                                               const OperandSets& operands);

/// Which operand each result of a node is written over: (output, input) pairs.
std::vector<std::pair<size_t, size_t>> updates_of(const ir::OpDef& op);

}  // namespace weft::conformance

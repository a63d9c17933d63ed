#pragma once
#include "conformance/bounds.h"

// How far a right run of a whole graph may be from the truth. A derived bound of a long graph is too wide to
// find faults; the noise bound measures instead what rounding does to this graph on these inputs.
namespace weft::conformance {

/// The number of products or terms that a node sums for each element of its result; 1: no sum.
int64_t accumulated_terms(const ir::Graph& graph, const ir::Node& node);

inline constexpr int kNoiseRuns = 8;
inline constexpr Real kNoiseFactor = 6;

/// For each output of `graph`: the truth in f64, and 6 times the largest deviation that 8 runs showed before
/// the output itself was rounded, in which every intermediate was randomly rounded, up or down, to its own
/// dtype, and functions and sums were off by as much as a kernel may be; plus the bound of the op that made
/// the output. `inputs` are the graph's inputs, states and weights, in that order; no dimension may be
/// symbolic.
Result<std::vector<Bounded>> noise_bound(const ir::Graph& graph, const std::vector<Array>& inputs,
                                         uint64_t seed = 1);

/// Runs a graph op by op on a backend, in its own dtypes. The graph's outputs, in order.
Result<std::vector<Array>> run_graph(const ir::Graph& graph, const std::vector<Array>& inputs,
                                     const std::string& backend);

}  // namespace weft::conformance

#pragma once
#include <functional>

#include "conformance/graphs/generate.h"

namespace weft::conformance {

/// The smallest graph inside `c` that still fails: delta debugging on nodes, outputs and sizes. Results of
/// removed nodes become inputs with their true values.
///
/// Source   Zeller and Hildebrandt, Simplifying and isolating failure-inducing input (TSE 2002).
GraphCase shrunk(GraphCase c, const std::function<bool(const GraphCase&)>& fails);

/// The graph as ir::parse reads it, with the seed and the numbers of the first run as comments.
std::string text(const GraphCase& c);

}  // namespace weft::conformance

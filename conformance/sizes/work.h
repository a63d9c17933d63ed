#pragma once
#include "conformance/sizes/draw.h"
#include "ir/graph.h"

namespace weft::conformance {

/// How long the oracle takes for a call, in elements that it copies: about a tenth of a microsecond each.
double oracle_work(const DrawnCall& call);
/// The same for a graph of primitives.
double oracle_work(const ir::Graph& graph);

}  // namespace weft::conformance

#pragma once
#include "conformance/sizes/draw.h"
#include "ir/graph.h"

namespace weft::conformance {

/// The oracle's time for a call, in units of copying one element: about a tenth of a microsecond.
double oracle_work(const DrawnCall& call);
/// The same for a graph of primitives.
double oracle_work(const ir::Graph& graph);

}  // namespace weft::conformance

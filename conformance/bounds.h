#pragma once
#include "conformance/oracle.h"
#include "ir/graph.h"

// The largest error of a right kernel per element: c(n) * eps * sum of |terms|, plus the propagated errors of
// the operands. One table (conformance/rules) for suite, lab and test vectors.
namespace weft::conformance {

/// The truth and the largest allowed error, element by element.
struct Bounded {
  Array value;
  std::vector<Real> error;
  bool bitwise = false;  ///< the sign of a zero counts too
};
Bounded exactly(Array value);

/// Truth and bound of one primitive call whose operands are themselves uncertain.
std::vector<Bounded> bound_primitive(const ir::OpDef& op, ir::AttrView attrs,
                                     std::span<const Bounded* const> in);
/// Running error analysis of a graph of primitives, node by node. `inputs` are the graph's inputs, states and
/// weights, in that order. Returns one Bounded per value.
std::vector<Bounded> bound_graph(const ir::Graph& graph, std::vector<Bounded> inputs);

/// Truth and bound of any op; composites by their decomposition. Attributes in the order of the op's fields.
Result<std::vector<Bounded>> bound_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                      const std::vector<Array>& inputs);
/// A graph of this one call, decomposed to primitives.
Result<ir::Graph> graph_of(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                           const std::vector<TensorType>& inputs);
/// The same graph with every composite decomposed. `kept`, if given, gets the new id of each old value.
Result<ir::Graph> lowered(const ir::Graph& graph, std::vector<int32_t>* kept = nullptr);

/// The result of a comparison: the worst element, in units of its bound.
struct Verdict {
  bool ok = true;
  std::string reason;  ///< "element 3: got 1.5, want 1 +- 1e-7"
  Real worst = 0;
};
/// Judges each element. `slack` multiplies the bound: 2 to compare `got` with another rounded answer.
Verdict judge(const Array& got, const Bounded& want, Real slack = 1);

}  // namespace weft::conformance

#include "compiler/recompose.h"

namespace weft::compiler {

// exp(x - max(x)) / sum of it. Without the maximum it is another function: it overflows.
static std::vector<Term> terms_of_softmax() {
  using namespace terms;
  const Term x = any("x"), e = op("exp", {sub(x, fold("max", x, "axes"))}).as("e");
  const Term total = fold("sum", any("e"), "axes");
  return {div(e, total), mul(e, reciprocal(total))};
}

static ir::Value make_softmax(const Place& p) {
  const IntList& axes = p.match.axes("axes");
  if (axes.size() != 1) return {};
  return p.graph.one("softmax", {p.value("x")}, {{"axis", axes[0]}});
}

extern const Recomposition softmax_recomposition = {"softmax", terms_of_softmax, make_softmax};

}  // namespace weft::compiler

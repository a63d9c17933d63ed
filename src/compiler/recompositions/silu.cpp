#include "compiler/recompose.h"

namespace weft::compiler {

// x sigmoid(x), or x / (1 + exp(-x)).
static std::vector<Term> terms_of_silu() {
  using namespace terms;
  const Term x = any("x");
  return {mul(x, sigmoid(x)), div(x, add(op("exp", {neg(x)}), number(1)))};
}

static ir::Value make_silu(const Place& p) { return p.graph.one("silu", {p.value("x")}); }

extern const Recomposition silu_recomposition = {"silu", terms_of_silu, make_silu};

}  // namespace weft::compiler

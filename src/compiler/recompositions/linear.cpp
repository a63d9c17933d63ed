#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// Weights may be inputs of a program, as in those that PyTorch calls with its own.
static bool is_given(const Place& p, ir::Value v) {
  return p.matcher.made_of_weights(v.id()) || !p.matcher.maker(v.id());
}

// A product with a weight that is turned for it, and the bias that follows; between views of its rows, or
// not.
static std::vector<Term> terms_of_linear() {
  const Term x = any("x"), w = any("w"), bias = any("bias");
  const Term turned = op("transpose", {w}).as("turned") | op("permute", {w}).as("turned");
  const Term bare = op("linear", {x, w}).as("linear"), whole = op("linear", {x, w, bias}).as("linear");
  const Term viewed_bare = op("linear", {op("reshape", {x}), w}).as("linear"),
             viewed_whole = op("linear", {op("reshape", {x}), w, bias}).as("linear");
  return {op("matmul", {x, turned}).as("product"), add(bare, any("more")), op("reshape", {viewed_bare}),
          op("reshape", {viewed_whole})};
}

static ir::Value make_linear(const Place& p) {
  const ir::Value x = p.value("x"), w = p.value("w"), root = p.root_value();
  ir::Value bias = p.match.has("bias") ? p.value("bias") : ir::Value();
  if (p.match.has("product")) {
    const ir::Node& product = *p.matcher.maker(p.match.value("product"));
    for (const char* flag : {"transpose_a", "transpose_b"})
      if (std::get<int64_t>(attr(product, flag)) != 0) return {};
    if (w.type().rank() != 2 || x.type().rank() < 2 || !is_given(p, w) ||
        !swaps_axes(*p.matcher.maker(p.match.value("turned")), 2, 0, 1))
      return {};
  }
  if (p.match.has("more")) {
    const Shape row = {w.shape()[0]};
    const ir::Value more = p.value("more");
    // One row that is computed is added to a result of one row: a residual, for which there are other
    // kernels.
    if (!is_row(more.type(), row) || !is_given(p, more)) return {};
    bias = reshaped(p.graph, more, row);
  }
  const std::array in = {x, w, bias};
  return gives("linear", in, {}, root.type()) ? p.graph.call("linear", in)[0] : ir::Value();
}

extern const Recomposition linear_recomposition = {"linear", terms_of_linear, make_linear};

}  // namespace weft::compiler

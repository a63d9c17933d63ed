#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// Layers make [batch, seq, heads, dim], and turn q, k, v and the result: attention reads and writes them so.
static std::vector<Term> terms_of_seq_first() {
  const auto turned = [](const Term& x, std::string_view name) {
    return op("permute", {x}).as(name) | op("transpose", {x}).as(name);
  };
  const Term q = turned(any("q"), "turned q"), k = turned(any("k"), "turned k"),
             v = turned(any("v"), "turned v");
  return {turned(op("attention", {q, k, v}).as("y"), "turned y"),
          turned(op("attention", {q, k, v, any("mask")}).as("y"), "turned y")};
}

static ir::Value make_seq_first(const Place& p) {
  const ir::Node node = *p.matcher.maker(p.match.value("y"));
  const int64_t rank = p.value("y").type().rank();
  for (const char* name : {"turned q", "turned k", "turned v", "turned y"})
    if (!swaps_axes(*p.matcher.maker(p.match.value(name)), rank, rank - 3, rank - 2)) return {};
  if (std::get<int64_t>(attr(node, "seq_first")) != 0) return {};
  const std::array in = {p.value("q"), p.value("k"), p.value("v"),
                         p.match.has("mask") ? p.value("mask") : ir::Value(), ir::Value()};
  return p.graph.call(
      "attention", in,
      {{"causal", attr(node, "causal")}, {"scale", attr(node, "scale")}, {"seq_first", int64_t{1}}})[0];
}

extern const Recomposition seq_first_recomposition = {"seq_first", terms_of_seq_first, make_seq_first};

}  // namespace weft::compiler

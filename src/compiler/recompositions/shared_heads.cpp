#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// Heads of k and v that are repeated for the heads of q which share them: attention reads them where they
// lie.
static std::vector<Term> terms_of_shared_heads() {
  const auto repeated = [](std::string_view x) { return op("reshape", {op("broadcast", {viewed(any(x))})}); };
  const Term q = any("q"), k = repeated("k").as("all k"), v = repeated("v").as("all v");
  return {op("attention", {q, k, v}).as("y"), op("attention", {q, k, v, any("mask")}).as("y")};
}

// [..., n, s, d] -> [..., n, 1, s, d] -> [..., n, times, s, d] -> [..., n * times, s, d], by the shapes
// alone.
static bool repeats_heads(const Place& p, const char* all, const char* one) {
  const ir::Node& joined = *p.matcher.maker(p.match.value(all));
  const ir::Node& spread = *p.matcher.maker(joined.inputs[0]);
  const Shape wide = p.matcher.type(spread.outputs[0]).shape, view = p.matcher.type(spread.inputs[0]).shape;
  const Shape heads = p.value(one).shape(), joint = p.value(all).shape();
  const size_t n = heads.size();
  if (n < 3 || joint.size() != n || wide.size() != n + 1 || view.size() != n + 1) return false;
  Shape split = heads, repeated = heads, merged = heads;
  split.insert(split.size() - 2, Dim(1));
  repeated.insert(repeated.size() - 2, wide[n - 2]);
  merged[n - 3] = heads[n - 3] * wide[n - 2];
  return view == split && wide == repeated && joint == merged;
}

static ir::Value make_shared_heads(const Place& p) {
  const ir::Node& node = *p.matcher.maker(p.match.value("y"));
  if (std::get<int64_t>(attr(node, "seq_first")) != 0) return {};
  if (!repeats_heads(p, "all k", "k") || !repeats_heads(p, "all v", "v")) return {};
  const std::array in = {p.value("q"), p.value("k"), p.value("v"),
                         p.match.has("mask") ? p.value("mask") : ir::Value(), ir::Value()};
  const ir::Node own = node;
  return p.graph.call(*own.op, in, own.attrs)[0];
}

extern const Recomposition shared_heads_recomposition = {"shared_heads", terms_of_shared_heads,
                                                         make_shared_heads};

}  // namespace weft::compiler

#include <algorithm>

#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// x cos + concat(-x2, x1) sin, for halves x1 and x2 of the last axis. The op's tables are half as wide: those
// here must be two equal halves.
static std::vector<Term> terms_of_rope() {
  const Term x = any("x"), first = op("slice", {x}).as("first"), second = op("slice", {x}).as("second");
  const Term turned = op("concat", {neg(second), first}).as("turned");
  return {add(mul(x, any("cos")), mul(turned, any("sin")))};
}

namespace {

// Is this the slice [from, to) of the last axis?
bool is_part(const ir::Node& slice, int64_t last, Dim from, Dim to) {
  return std::get<int64_t>(attr(slice, "axis")) == last && std::get<int64_t>(attr(slice, "step")) == 1 &&
         std::get<Shape>(attr(slice, "start"))[0] == from && std::get<Shape>(attr(slice, "stop"))[0] == to;
}

// Are the halves of the last axis equal? Of an angle that was concatenated with itself, and what was made of
// it element by element.
bool has_equal_halves(const Place& p, int32_t id) {
  const ir::Node* node = p.matcher.maker(id);
  const Shape& shape = p.matcher.type(id).shape;
  if (shape.empty() || shape.back() == Dim(1)) return true;  // one number for each row
  if (!node || !is_pure(*node)) return false;
  const std::string_view op = node->op->name;
  const auto same_last = [&](int32_t in) {
    const Shape& s = p.matcher.type(in).shape;
    return !s.empty() && s.back() == shape.back();
  };
  if (op == "concat")
    return std::get<int64_t>(attr(*node, "axis")) == static_cast<int64_t>(shape.size()) - 1 &&
           node->inputs[0] == node->inputs[1] && (node->inputs.size() < 3 || node->inputs[2] < 0);
  if (op == "reshape" || op == "broadcast")
    return (same_last(node->inputs[0]) || op == "broadcast") && has_equal_halves(p, node->inputs[0]);
  return ir::has(node->op->traits, ir::Trait::elementwise) &&
         std::ranges::all_of(node->inputs, [&](int32_t in) { return in < 0 || has_equal_halves(p, in); });
}

ir::Value half_of(const Place& p, ir::Value table, Dim half) {
  const int64_t last = table.type().rank() - 1;
  return p.graph.one("slice", {table}, {{"axis", last}, {"start", Shape{0}}, {"stop", Shape{half}}});
}

}  // namespace

static ir::Value make_rope(const Place& p) {
  const ir::Value x = p.value("x"), cos = p.value("cos"), sin = p.value("sin");
  const int64_t last = x.type().rank() - 1;
  if (last < 0 || !x.shape().back().is_const() || x.shape().back().value() % 2 != 0) return {};
  const Dim dim = x.shape().back(), half = floor_div(dim, 2);
  const auto node = [&](const char* name) -> const ir::Node& {
    return *p.matcher.maker(p.match.value(name));
  };
  if (!is_part(node("first"), last, 0, half) || !is_part(node("second"), last, half, dim)) return {};
  if (std::get<int64_t>(attr(node("turned"), "axis")) != last || !(cos.shape() == sin.shape())) return {};
  if (cos.shape().empty() || !(cos.shape().back() == dim) || cos.dtype() != x.dtype()) return {};
  if (!has_equal_halves(p, cos.id()) || !has_equal_halves(p, sin.id())) return {};
  const std::array in = {x, half_of(p, cos, half), half_of(p, sin, half)};
  return gives("rope", in, {}, x.type()) ? p.graph.call("rope", in)[0] : ir::Value();
}

extern const Recomposition rope_recomposition = {"rope", terms_of_rope, make_rope};

}  // namespace weft::compiler

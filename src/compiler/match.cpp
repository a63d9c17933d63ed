#include "compiler/match.h"

#include <algorithm>
#include <cmath>

#include "compiler/module.h"

namespace weft::compiler {

struct Term::Data {
  Kind kind = Kind::any;
  std::string_view name;     // of the value, or of a number
  const char* op = nullptr;  // of a node or a fold
  std::string_view axes;     // of a fold
  std::optional<double> wanted;
  std::vector<Term> parts;  // operands, or alternatives
};

static Term make(Term::Data data) { return Term(std::make_shared<const Term::Data>(std::move(data))); }

Term Term::as(std::string_view name) const {
  Data data = *data_;
  data.name = name;
  return make(std::move(data));
}

namespace terms {

Term any(std::string_view name) { return make({.kind = Term::Kind::any, .name = name}); }
Term number(std::string_view name) { return make({.kind = Term::Kind::number, .name = name}); }
Term number(double value) { return make({.kind = Term::Kind::number, .wanted = value}); }
Term op(const char* name, std::vector<Term> operands) {
  return make({.kind = Term::Kind::op, .op = name, .parts = std::move(operands)});
}
Term fold(const char* op, Term x, std::string_view axes) {
  return make({.kind = Term::Kind::fold, .op = op, .axes = axes, .parts = {std::move(x)}});
}
Term operator|(const Term& a, const Term& b) { return make({.kind = Term::Kind::either, .parts = {a, b}}); }

Term add(const Term& a, const Term& b) { return op("add", {a, b}); }
Term sub(const Term& a, const Term& b) { return op("sub", {a, b}); }
Term mul(const Term& a, const Term& b) { return op("mul", {a, b}); }
Term div(const Term& a, const Term& b) { return op("div", {a, b}); }
Term viewed(const Term& x) { return x | op("reshape", {x}); }
Term product(const Term& a, const Term& b, const Term& c) {
  return mul(a, mul(b, c)) | mul(b, mul(a, c)) | mul(c, mul(a, b));
}
Term scaled(const Term& x, double by) { return mul(x, number(by)) | div(x, number(1 / by)); }
Term neg(const Term& x) { return op("neg", {x}) | mul(x, number(-1)); }
Term square(const Term& x) { return op("square", {x}) | mul(x, x) | op("power", {x, number(2)}); }
Term sqrt(const Term& x) { return op("sqrt", {x}) | op("power", {x, number(0.5)}); }
Term reciprocal(const Term& x) {
  return op("reciprocal", {x}) | div(number(1), x) | op("power", {x, number(-1)});
}
Term rsqrt(const Term& x) { return op("rsqrt", {x}) | reciprocal(sqrt(x)) | op("power", {x, number(-0.5)}); }
Term sigmoid(const Term& x) { return op("sigmoid", {x}) | reciprocal(add(op("exp", {neg(x)}), number(1))); }

}  // namespace terms

const AttrValue& attr(const ir::Node& node, std::string_view name) {
  const auto& specs = node.op->attrs;
  const auto at = std::ranges::find_if(specs, [&](const ir::AttrSpec& s) { return name == s.name; });
  return node.attrs[static_cast<size_t>(at - specs.begin())];
}

bool swaps_axes(const ir::Node& node, int64_t rank, int64_t a, int64_t b) {
  if (std::string_view(node.op->name) == "transpose") {
    const auto axis = [&](const char* name) {
      const auto at = std::get<int64_t>(attr(node, name));
      return at < 0 ? at + rank : at;
    };
    return (axis("axis_a") == a && axis("axis_b") == b) || (axis("axis_a") == b && axis("axis_b") == a);
  }
  const Shape& axes = std::get<Shape>(attr(node, "axes"));
  for (int64_t d = 0; d < rank; ++d)
    if (!(axes[static_cast<size_t>(d)] == Dim(d == a ? b : d == b ? a : d))) return false;
  return true;
}

Matcher::Matcher(const ir::Graph& g) : g_(g), maker_(g.types.size(), -1), of_weights_(g.types.size(), false) {
  for (const auto& w : g.weights) of_weights_[static_cast<size_t>(w.value)] = true;
}

void Matcher::add_last_node() {
  const ir::Node& node = g_.nodes.back();
  maker_.resize(g_.types.size(), -1), of_weights_.resize(g_.types.size(), false);
  const bool constant = is_pure(node) && std::ranges::all_of(node.inputs, [&](int32_t id) {
                          return id < 0 || made_of_weights(id);
                        });
  for (const int32_t id : node.outputs) {
    maker_[static_cast<size_t>(id)] = static_cast<int32_t>(g_.nodes.size()) - 1;
    of_weights_[static_cast<size_t>(id)] = constant;
  }
}

const ir::Node* Matcher::maker(int32_t value) const {
  const int32_t at = value < 0 ? -1 : place(value);
  return at < 0 ? nullptr : &g_.nodes[static_cast<size_t>(at)];
}

static bool is(const ir::Node* node, std::string_view op) { return node && op == node->op->name; }

// Does a cast leave such numbers as constants are what they were?
static bool keeps_numbers(DType from, DType to) {
  return from == to || (is_float(to) && (!is_float(from) || byte_size(from) < byte_size(to)));
}

std::optional<Constant> Matcher::constant(int32_t value) const {
  const ir::Node* node = maker(value);
  while (is(node, "reshape") || is(node, "broadcast") || is(node, "cast")) {
    if (!keeps_numbers(type(node->inputs[0]).dtype, type(node->outputs[0]).dtype)) return {};
    node = maker(node->inputs[0]);
  }
  if (!is(node, "full")) return {};
  return Constant{std::get<double>(attr(*node, "value")), std::get<Shape>(attr(*node, "times"))[0]};
}

// ---- what fits

template <class T>
static bool bound_to(std::vector<std::pair<std::string_view, T>>& all, std::string_view name,
                     const T& value) {
  if (name.empty()) return true;
  for (const auto& [n, v] : all)
    if (n == name) return v == value;
  all.emplace_back(name, value);
  return true;
}

// 0.5 and the f16 that is next to 0.044715 are what they stand for.
static bool stands_for(double got, double want, DType dtype) {
  return std::fabs(got - want) <= (is_float(dtype) ? epsilon(dtype) : 0) * std::fabs(want);
}

std::vector<Match> Matcher::solve(const Term& t, int32_t value, const Match& so_far) const {
  const Term::Data& term = *t;
  if (value < 0) return {};
  std::vector<Match> all;
  switch (term.kind) {
    case Term::Kind::any: all = {so_far}; break;
    case Term::Kind::number: {
      const auto c = constant(value);
      if (!c || !c->times.is_const()) return {};
      const double n = c->value * static_cast<double>(c->times.value());
      Match m = so_far;
      const bool fits =
          term.wanted ? stands_for(n, *term.wanted, type(value).dtype) : bound_to(m.numbers_, term.name, n);
      return fits ? std::vector{std::move(m)} : std::vector<Match>();
    }
    case Term::Kind::op: all = solve_op(term, value, so_far); break;
    case Term::Kind::fold: all = solve_fold(term, value, so_far); break;
    case Term::Kind::either:
      for (const Term& part : term.parts)
        for (Match& m : solve(part, value, so_far)) all.push_back(std::move(m));
  }
  std::erase_if(all, [&](Match& m) { return !bound_to(m.values_, term.name, value); });
  return all;
}

static bool commutes(std::string_view op) {
  return op == "add" || op == "mul" || op == "maximum" || op == "minimum";
}

std::vector<Match> Matcher::solve_op(const Term::Data& t, int32_t value, const Match& so_far) const {
  const ir::Node* node = maker(value);
  if (!is(node, t.op) || node->outputs[0] != value || node->inputs.size() < t.parts.size()) return {};
  for (size_t i = t.parts.size(); i < node->inputs.size(); ++i)
    if (node->inputs[i] >= 0) return {};
  std::vector<int32_t> operands(node->inputs.begin(),
                                node->inputs.begin() + static_cast<ptrdiff_t>(t.parts.size()));
  Match with_node = so_far;
  with_node.nodes.push_back(static_cast<size_t>(place(value)));
  std::vector<Match> all;
  for (int turn = 0; turn < (commutes(t.op) ? 2 : 1); ++turn) {
    std::vector<Match> some = {with_node};
    for (size_t i = 0; i < t.parts.size(); ++i) {
      std::vector<Match> more;
      for (const Match& m : some)
        for (Match& next : solve(t.parts[i], operands[i], m)) more.push_back(std::move(next));
      some = std::move(more);
    }
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    std::reverse(operands.begin(), operands.end());
  }
  return all;
}

// Of a fold: its axes, sorted; all of them for an empty list.
static IntList folded_axes(const ir::Node& fold, int64_t rank) {
  IntList axes;
  for (const Dim axis : std::get<Shape>(attr(fold, "axes"))) axes.push_back(axis.value());
  for (int64_t d = 0; axes.empty() && d < rank; ++d) axes.push_back(d);
  for (int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  return axes;
}

// node = sum / n or sum * (1 / n), for n elements folded into each.
bool Matcher::divides_by_count(const ir::Node& node, const ir::Node& sum) const {
  const Shape& x = type(sum.inputs[0]).shape;
  Dim n = 1;
  for (const int64_t axis : folded_axes(sum, static_cast<int64_t>(x.size())))
    n = n * x[static_cast<size_t>(axis)];
  const size_t other = node.inputs[0] == sum.outputs[0] ? 1 : 0;
  const auto c = constant(node.inputs[other]);
  const DType dtype = type(node.outputs[0]).dtype;
  if (!c) return false;
  if (is(&node, "div")) {
    if (other != 1) return false;
    return c->times == n ? c->value == 1
                         : c->times.is_const() && n.is_const() &&
                               stands_for(c->value * static_cast<double>(c->times.value()),
                                          static_cast<double>(n.value()), dtype);
  }
  return is(&node, "mul") && n.is_const() && n.value() > 0 && c->times.is_const() &&
         stands_for(c->value * static_cast<double>(c->times.value()), 1 / static_cast<double>(n.value()),
                    dtype);
}

std::vector<Match> Matcher::solve_fold(const Term::Data& t, int32_t value, Match m) const {
  const auto step = [&](std::string_view op) -> const ir::Node* {
    const ir::Node* node = maker(value);
    if (!is(node, op)) return nullptr;
    m.nodes.push_back(static_cast<size_t>(place(value)));
    value = node->inputs[0];
    return node;
  };
  const int32_t as_read = value;
  const bool spread = step("broadcast") != nullptr;
  const Shape kept = type(value).shape;
  while (step("reshape")) {
  }
  const ir::Node* node = maker(value);
  if (!node || node->inputs.empty()) return {};
  if (std::string_view(t.op) == "mean" && !is(node, "mean")) {  // a sum, divided
    const ir::Node* sum = nullptr;
    for (const int32_t id : node->inputs)
      if (const ir::Node* made = maker(id); is(made, "sum") && !sum) sum = made;
    if (!sum || node->inputs.size() != 2 || !divides_by_count(*node, *sum)) return {};
    m.nodes.push_back(static_cast<size_t>(place(value)));
    value = sum->outputs[0], node = sum;
  } else if (!is(node, t.op)) {
    return {};
  }
  if (is(node, "variance") && std::get<int64_t>(attr(*node, "correction")) != 0) return {};
  m.nodes.push_back(static_cast<size_t>(place(value)));
  const Shape& x = type(node->inputs[0]).shape;
  const IntList axes = folded_axes(*node, static_cast<int64_t>(x.size()));
  Shape wanted = x;
  for (const int64_t axis : axes) wanted[static_cast<size_t>(axis)] = 1;
  if (!(kept == wanted) || (spread && !(type(as_read).shape == x))) return {};
  if (!bound_to(m.axes_, t.axes, axes)) return {};
  return solve(t.parts[0], node->inputs[0], m);
}

}  // namespace weft::compiler

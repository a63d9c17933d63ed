#include "ir/graph.h"

#include <set>

namespace weft::ir {

Value Graph::add_value(TensorType type) {
  types.push_back(std::move(type));
  return {this, static_cast<int32_t>(types.size()) - 1};
}

Value Graph::input(std::string name, TensorType type) {
  const Value v = add_value(std::move(type));
  inputs.push_back({std::move(name), v.id()});
  return v;
}
Value Graph::state(std::string name, TensorType type) {
  const Value v = add_value(std::move(type));
  states.push_back({std::move(name), v.id(), v.id()});
  return v;
}
Value Graph::weight(std::string name, TensorType type) {
  const Value v = add_value(std::move(type));
  weights.push_back({std::move(name), v.id()});
  return v;
}
Value Graph::placeholder(const TensorType& type) { return add_value(type); }

ValueList Graph::emit(const OpDef& op, Values in, std::vector<AttrValue> attrs,
                      std::vector<TensorType> out_types) {
  Node node{.op = &op, .attrs = std::move(attrs)};
  for (const Value v : in) node.inputs.push_back(v ? v.id() : -1);
  node.inputs.resize(op.listed(node.inputs.size()), -1);
  node.where = scope.empty() ? op.name : scope + "." + op.name;
  node.from = from, node.run = run;
  ValueList out;
  for (auto& t : out_types) {
    out.push_back(add_value(std::move(t)));
    node.outputs.push_back(out.back().id());
  }
  nodes.push_back(std::move(node));
  return out;
}

namespace {

// Collects what is defined where, in order.
class Checker {
 public:
  explicit Checker(const Graph& g) : g_(g), defined_(g.types.size(), false) {}

  Status define(int32_t id, std::string_view what) {
    if (id < 0 || static_cast<size_t>(id) >= defined_.size())
      return invalid("{}: value %{} is out of range", what, id);
    if (defined_[static_cast<size_t>(id)]) return invalid("{}: value %{} is defined twice", what, id);
    defined_[static_cast<size_t>(id)] = true;
    return {};
  }
  Status use(int32_t id, std::string_view what) const {
    if (id < 0 || static_cast<size_t>(id) >= defined_.size() || !defined_[static_cast<size_t>(id)])
      return invalid("{}: value %{} is used before it is defined", what, id);
    return {};
  }
  // Shape rules trust the number and kinds of their arguments.
  static Status form(const Node& n) {
    const auto defaults = n.op->defaults();
    if (n.inputs.size() != n.op->listed(n.inputs.size()))
      return invalid("{}: {} wants {} operands, got {}", n.where, n.op->name, n.op->n_inputs,
                     n.inputs.size());
    for (size_t i = 0; i + n.op->n_optional < n.inputs.size(); ++i)
      if (n.inputs[i] < 0)
        return invalid("{}: {}'s operand '{}' is missing", n.where, n.op->name, n.op->inputs[i]);
    if (n.attrs.size() != defaults.size())
      return invalid("{}: {} has {} attributes, got {}", n.where, n.op->name, defaults.size(),
                     n.attrs.size());
    for (size_t i = 0; i < defaults.size(); ++i)
      if (n.attrs[i].index() != defaults[i].index())
        return invalid("{}: attribute '{}' of {} has the wrong kind", n.where, n.op->attrs[i].name,
                       n.op->name);
    return {};
  }
  Status node(const Node& n) {
    WEFT_CHECK(form(n));
    std::vector<const TensorType*> in;
    for (const int32_t id : n.inputs) {
      if (id >= 0) WEFT_CHECK(use(id, n.where));
      in.push_back(id < 0 ? nullptr : &g_.types[static_cast<size_t>(id)]);
    }
    WEFT_TRY(const auto types, n.op->infer(Types(in), n.attrs));
    if (n.outputs.size() < types.size())
      return invalid("{}: {} has {} results, got {}", n.where, n.op->name, types.size(), n.outputs.size());
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      WEFT_CHECK(define(n.outputs[i], n.where));
      const auto& have = g_.types[static_cast<size_t>(n.outputs[i])];
      if (i >= types.size() || !(types[i] == have))
        return invalid("{}: result {} is {}, but the shape rule says {}", n.where, i, text(have),
                       i < types.size() ? text(types[i]) : "nothing");
    }
    return {};
  }

 private:
  const Graph& g_;
  std::vector<bool> defined_;
};

}  // namespace

Status verify(const Graph& g) {
  Checker c(g);
  std::set<std::string> names;
  for (const auto& i : g.inputs) WEFT_CHECK(c.define(i.value, "input " + i.name));
  for (const auto& s : g.states) WEFT_CHECK(c.define(s.before, "state " + s.name));
  for (const auto& w : g.weights) WEFT_CHECK(c.define(w.value, "weight " + w.name));
  for (const auto& n : g.nodes) WEFT_CHECK(c.node(n));
  for (const auto& o : g.outputs) WEFT_CHECK(c.use(o.value, "output " + o.name));
  for (const auto& s : g.states) {
    WEFT_CHECK(c.use(s.after, "state " + s.name));
    const auto &before = g.types[static_cast<size_t>(s.before)],
               &after = g.types[static_cast<size_t>(s.after)];
    if (!(before == after))
      return invalid("state {} begins as {} and ends as {}", s.name, text(before), text(after));
  }
  for (const auto& s : g.states)
    if (!names.insert(s.name).second) return invalid("two states are named {}", s.name);
  return {};
}

}  // namespace weft::ir

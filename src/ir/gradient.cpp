#include <algorithm>
#include <map>
#include <optional>

#include "base/element.h"
#include "ir/graph.h"

namespace weft::ir {
namespace {

TensorType widened(TensorType t) {
  if (is_half(t.dtype)) t.dtype = DType::f32;
  return t;
}

// Each value that the rule uses becomes an input of the graph, once; `leaves` maps its number to its source.
class RecordingContext final : public GradContext {
 public:
  RecordingContext(Graph& graph, const OpDef& op, const GradContext& from) : graph_(graph), from_(from) {
    for (int i = 0; i < op.n_inputs; ++i) in_types_.push_back(widened(from.in_type(i)));
    for (int k = 0; k < op.n_outputs; ++k) out_types_.push_back(widened(from.out_type(k)));
  }
  Value in(int i) const override {
    return leaf("in", i, [&] { return from_.in(i); });
  }
  Value out(int i) const override {
    return leaf("out", i, [&] { return from_.out(i); });
  }
  Value dout(int i) const override {
    return leaf("dout", i, [&] { return from_.dout(i); });
  }
  bool flows(int i) const override { return from_.flows(i); }
  bool wants(int i) const override { return from_.wants(i); }
  bool has(int i) const override { return from_.has(i); }
  const TensorType& in_type(int i) const override { return in_types_[static_cast<size_t>(i)]; }
  const TensorType& out_type(int i) const override { return out_types_[static_cast<size_t>(i)]; }

  const std::map<int32_t, Value>& leaves() const { return leaves_; }

 private:
  template <class F>
  Value leaf(const char* kind, int i, F get) const {
    Value& v = known_[{kind, i}];
    if (!v) {
      const Value from = get();
      v = graph_.input("", widened(from.type()));
      leaves_[v.id()] = from;
    }
    return v;
  }

  Graph& graph_;
  const GradContext& from_;
  std::vector<TensorType> in_types_, out_types_;
  mutable std::map<std::pair<std::string_view, int>, Value> known_;
  mutable std::map<int32_t, Value> leaves_;
};

// Runs a recorded rule, node by node: in halves if that loses nothing, else in f32.
class Replay {
 public:
  Replay(Builder& b, const Graph& rule, const std::map<int32_t, Value>& leaves)
      : b_(b), rule_(rule), known_(rule.types.size()) {
    for (const auto& [id, v] : leaves) set(id, v), at(id).leaf = true;
    for (const Node& n : rule.nodes)
      if (std::string_view(n.op->name) == "full") at(n.outputs[0]).constant = &n;
  }

  Grads run(const Grads& recorded, const GradContext& ctx) {
    const auto type = [&](size_t i) { return ctx.in_type(static_cast<int>(i)).dtype; };
    const auto needed = [&](size_t i) { return recorded[i] && ctx.wants(static_cast<int>(i)); };
    for (size_t i = 0; i < recorded.size(); ++i)
      if (needed(i)) use(recorded[i].id(), is_half(type(i)) ? std::optional(type(i)) : std::nullopt);
    for (auto n = rule_.nodes.rbegin(); n != rule_.nodes.rend(); ++n) look_back(*n);
    for (const Node& n : rule_.nodes) play(n);
    Grads grads(recorded.size());
    for (size_t i = 0; i < recorded.size(); ++i)
      if (needed(i)) grads[i] = b_.cast(nearest(recorded[i].id(), type(i)), type(i));
    return grads;
  }

 private:
  struct Known {
    Value half, wide;                // the value in both precisions, if present
    std::optional<DType> rounds_to;  // set if it is only moved into gradients of this half
    const Node* constant = nullptr;  // `full`: created in the requested dtype
    bool leaf = false, used = false;
  };
  Known& at(int32_t id) { return known_[static_cast<size_t>(id)]; }
  const TensorType& type(int32_t id) const { return rule_.types[static_cast<size_t>(id)]; }
  void set(int32_t id, Value v) { (is_half(v.dtype()) ? at(id).half : at(id).wide) = v; }

  void use(int32_t id, std::optional<DType> moves_into) {
    Known& v = at(id);
    v.rounds_to = v.used && v.rounds_to != moves_into ? std::nullopt : moves_into;
    v.used = true;
  }
  bool is_used(const Node& n) {
    return std::any_of(n.outputs.begin(), n.outputs.end(), [&](int32_t id) { return at(id).used; });
  }
  void look_back(const Node& n) {
    if (!is_used(n)) return;
    const auto into = moves(n) ? at(n.outputs[0]).rounds_to : std::nullopt;
    for (const int32_t id : n.inputs)
      if (id >= 0) use(id, into);
  }

  std::optional<double> number(int32_t id) {
    if (id < 0 || !at(id).constant) return {};
    const auto& attrs = at(id).constant->attrs;
    const Dim times = std::get<Shape>(attrs[3])[0];
    if (!times.is_const()) return {};
    return std::get<double>(attrs[0]) * static_cast<double>(times.value());
  }
  // Returns elements of its operands, perhaps negated.
  bool moves(const Node& n) {
    if (has(n.op->traits, Trait::movement)) return true;
    if (std::string_view(n.op->name) != "mul") return false;
    const auto one = [&](int32_t id) { return number(id) == 1.0 || number(id) == -1.0; };
    return one(n.inputs[0]) || one(n.inputs[1]);
  }

  // The half in which all float operands of the node are available; none if there is no common one.
  std::optional<DType> half_of(const Node& n) {
    std::optional<DType> half;
    for (const int32_t id : n.inputs)
      if (id >= 0 && !half) half = at(id).half ? at(id).half.dtype() : at(id).rounds_to;
    if (!half) return {};
    for (const int32_t id : n.inputs)
      if (id >= 0 && is_float(type(id).dtype) && !fits(id, *half)) return {};
    return half;
  }
  bool fits(int32_t id, DType half) {
    const Known& v = at(id);
    if (v.half) return v.half.dtype() == half;
    if (v.constant) return number(id) && holds(half, *number(id));
    return v.leaf || v.rounds_to == half;
  }

  // As an operand of a call in halves; values that were no halves when the rule began are not converted.
  bool turns_half(int32_t id) {
    const Known& v = at(id);
    return type(id).dtype == DType::f32 && (v.half || !v.leaf);
  }

  // May the node run in this half? Its shape rule must take the operands, and what it rounds must be
  // gradients.
  bool runs_in(const Node& n, DType half) {
    std::vector<TensorType> types;
    std::vector<const TensorType*> in;
    types.reserve(n.inputs.size());
    for (const int32_t id : n.inputs) {
      if (id >= 0) types.push_back(type(id));
      if (id >= 0 && turns_half(id)) types.back().dtype = half;
      in.push_back(id >= 0 ? &types.back() : nullptr);
    }
    auto out = n.op->infer(Types(in), n.attrs);
    if (!out.ok()) return false;
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      const Known& v = at(n.outputs[k]);
      const bool same = (*out)[k].dtype == type(n.outputs[k]).dtype;
      if (v.used && !same && !moves(n) && v.rounds_to != half) return false;
    }
    return true;
  }

  void play(const Node& n) {
    if (!is_used(n) || at(n.outputs[0]).constant) return;
    auto half = half_of(n);
    if (half && !runs_in(n, *half)) half.reset();
    ValueList in;
    for (const int32_t id : n.inputs) in.push_back(id < 0 ? Value() : half ? nearest(id, *half) : wide(id));
    const auto out = b_.call(*n.op, in, n.attrs);
    for (size_t k = 0; k < n.outputs.size(); ++k) set(n.outputs[k], out[k]);
  }

  // `full`, in its own dtype or, instead of f32, in `t`.
  Value made(const Node& constant, DType t) {
    auto attrs = constant.attrs;
    if (std::get<std::string>(attrs[2]) == name(DType::f32)) attrs[2] = std::string(name(t));
    return b_.call(*constant.op, {}, std::move(attrs))[0];
  }
  Value wide(int32_t id) {
    Known& v = at(id);
    if (!v.wide) v.wide = v.constant ? made(*v.constant, DType::f32) : b_.cast(v.half, DType::f32);
    return v.wide;
  }
  // The value in `t`, or in f32 if `t` would lose needed precision.
  Value nearest(int32_t id, DType t) {
    Known& v = at(id);
    if (!v.half && v.constant) return made(*v.constant, t);
    if (!v.half && is_half(t) && turns_half(id)) v.half = b_.cast(v.wide, t);
    return v.half ? v.half : wide(id);
  }

  Builder& b_;
  const Graph& rule_;
  std::vector<Known> known_;  // by value of the rule
};

bool any_half(const OpDef& op, const GradContext& ctx) {
  for (int i = 0; i < op.n_inputs; ++i)
    if (ctx.has(i) && is_half(ctx.in_type(i).dtype)) return true;
  for (int k = 0; k < op.n_outputs; ++k)
    if (is_half(ctx.out_type(k).dtype)) return true;
  return false;
}

}  // namespace

Grads differentiate(Builder& b, const OpDef& op, const GradContext& ctx, AttrView attrs) {
  if (!any_half(op, ctx)) return op.grad(b, ctx, attrs);
  Graph rule;
  const RecordingContext recording(rule, op, ctx);
  const Grads recorded = op.grad(rule, recording, attrs);
  if (!rule.status().ok()) {
    b.fail(rule.status());
    return Grads(op.n_inputs);
  }
  return Replay(b, rule, recording.leaves()).run(recorded, ctx);
}

}  // namespace weft::ir

#include "conformance/bounds.h"

#include <algorithm>
#include <cmath>

#include "conformance/rules.h"
#include "ir/lower.h"

namespace weft::conformance {

DType compute_type(DType t) { return is_half(t) ? DType::f32 : t; }

Real rounding(DType t, Real size, Real c) {
  if (!is_float(t) || size == 0 || c == 0) return 0;
  const auto ulps = [&](DType type, Real n) {
    return n * std::max(format(type).eps() * size, format(type).least());
  };
  return ulps(compute_type(t), c) + (is_half(t) ? ulps(t, 0.5L) : Real{0});
}

Real gamma(DType t, Real n) {
  const Real nu = n * format(compute_type(t)).eps() / 2;
  return is_float(t) ? nu / (1 - nu) : Real{0};
}

Array like(const Array& a, Errors v) { return {a.dtype, a.shape, std::move(v)}; }
Errors absolute(const Array& a) {
  Errors v;
  for (const Real x : a.v) v.push_back(std::fabs(x));
  return v;
}
Errors run(const BoundCall& c, std::vector<Array> in) {
  std::vector<const Array*> pointers;
  for (auto& a : in) {
    if (!is_float(a.dtype)) a.dtype = DType::f64;
    pointers.push_back(&a);
  }
  return evaluate<Real>(c.op, c.attrs, pointers)[0].v;
}

Real with_rounding(const BoundCall& c, Real y, Real carried) {
  return carried + rounding(c.out.dtype, y + carried, c.c);
}

Errors summed(const BoundCall& c, const Errors& terms, const Errors& carried, const Errors& roundings,
              bool products) {
  const DType t = c.out.dtype;
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) {
    const Real size = terms[i] + carried[i];
    Real own = gamma(t, std::max<Real>(0, roundings[i])) * size;
    if (products && size != 0) own += roundings[i] * format(compute_type(t)).least();
    if (is_half(t)) own += rounding(t, std::fabs(c.out.v[i]) + carried[i] + own, 0.5L);
    // Some order of additions overflows, and another one overflows with the other sign.
    const bool overflows = roundings[i] > 1 && size > format(compute_type(t)).largest;
    e.push_back(is_float(t) && overflows ? kInf : carried[i] + own);
  }
  return e;
}
Errors sum_of_products(const BoundCall& c) {
  const auto &a = *c.in[0], &b = *c.in[1];
  const Array aa = like(a.value, absolute(a.value)), bb = like(b.value, absolute(b.value));
  const Array one_a = like(a.value, Errors(aa.v.size(), 1)), one_b = like(b.value, Errors(bb.v.size(), 1));
  Errors carried(c.out.v.size(), 0);
  const auto is_exact = [](const Bounded& x) {
    return std::ranges::all_of(x.error, [](Real e) { return e == 0; });
  };
  if (!is_exact(a) || !is_exact(b)) {
    const Array ea = like(a.value, a.error), eb = like(b.value, b.error);
    carried = run(c, {aa, eb});
    const Errors second = run(c, {ea, bb}), both = run(c, {ea, eb});
    for (size_t i = 0; i < carried.size(); ++i) carried[i] += second[i] + both[i];
  }
  return summed(c, run(c, {aa, bb}), carried, run(c, {one_a, one_b}), true);
}
Errors moved(const BoundCall& c) {
  std::vector<Array> in;
  for (size_t i = 0; i < c.in.size(); ++i)
    in.push_back(i == 0 ? like(c.in[i]->value, c.in[i]->error) : c.in[i]->value);
  return run(c, std::move(in));
}
Errors none(const BoundCall& c) { return Errors(c.out.v.size(), 0); }

// Values outside a dtype's range become infinite; if the error straddles the edge, anything is right.
static void overflow(Bounded& b) {
  if (!is_float(b.value.dtype)) return;
  const DType t = b.value.dtype;
  for (size_t i = 0; i < b.error.size(); ++i) {
    Real &v = b.value.v[i], &e = b.error[i];
    if (e == kOpen) {
      e = kInf;
      if (!std::isfinite(v)) v = 0;  // later ops use the error of a finite value
    } else if (!std::isfinite(v)) {
      e = 0;
    } else if (std::isnan(e)) {
      e = kInf;
    } else if (std::fabs(round_to(t, std::fabs(v) + e)) > format(t).largest) {
      const bool sure = round_to(t, std::fabs(v) - e) > format(t).largest;
      if (sure)
        v = round_to(t, v), e = 0;
      else if (e != 0)
        e = kInf;
    }
  }
}

Bounded exactly(Array value) {
  Errors none(value.v.size(), 0);
  return {std::move(value), std::move(none)};
}

std::vector<Bounded> bound_primitive(const ir::OpDef& op, ir::AttrView attrs,
                                     std::span<const Bounded* const> in) {
  std::vector<const Array*> operands;
  for (const auto* x : in) operands.push_back(&x->value);
  std::vector<Bounded> out;
  for (auto& value : evaluate<Real>(op, attrs, operands)) out.push_back(exactly(std::move(value)));
  const Rule& rule = *find_rule(op.name);  // exists: evaluate() has found it
  out[0].error = rule.propagate({op, attrs, in, out[0].value, rule.c});
  if (rule.propagate_second) out[1].error = rule.propagate_second({op, attrs, in, out[1].value, rule.c});
  for (auto& b : out) overflow(b);
  return out;
}

std::vector<Bounded> bound_graph(const ir::Graph& graph, std::vector<Bounded> inputs) {
  std::vector<Bounded> all(graph.types.size());
  size_t next = 0;
  for (const auto& i : graph.inputs) all[static_cast<size_t>(i.value)] = std::move(inputs.at(next++));
  for (const auto& s : graph.states) all[static_cast<size_t>(s.before)] = std::move(inputs.at(next++));
  for (const auto& w : graph.weights) all[static_cast<size_t>(w.value)] = std::move(inputs.at(next++));
  for (const auto& node : graph.nodes) {
    std::vector<const Bounded*> in;
    for (const int32_t id : node.inputs)
      if (id >= 0) in.push_back(&all[static_cast<size_t>(id)]);
    auto out = bound_primitive(*node.op, node.attrs, in);
    for (size_t k = 0; k < out.size(); ++k) all[static_cast<size_t>(node.outputs[k])] = std::move(out[k]);
  }
  return all;
}

Result<ir::Graph> graph_of(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                           const std::vector<TensorType>& inputs) {
  std::vector<const TensorType*> types;
  for (const auto& t : inputs) types.push_back(&t);
  WEFT_TRY([[maybe_unused]] const auto checked, op.infer(ir::Types(types), attrs));
  ir::Graph whole;
  ir::ValueList in;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(whole.input(op.inputs[i], inputs[i]));
  const auto out = whole.call(op, in, attrs);
  for (size_t k = 0; k < out.size(); ++k) whole.output(op.outputs[k], out[k]);
  return op.primitive() ? Result<ir::Graph>(std::move(whole)) : lowered(whole);
}

Result<ir::Graph> lowered(const ir::Graph& graph, std::vector<int32_t>* kept) {
  ir::Graph g;
  std::vector<int32_t> to(graph.types.size(), -1);
  const auto type = [&](int32_t id) { return graph.types[static_cast<size_t>(id)]; };
  const auto at = [&](int32_t id) -> int32_t& { return to[static_cast<size_t>(id)]; };
  for (const auto& i : graph.inputs) at(i.value) = g.input(i.name, type(i.value)).id();
  for (const auto& s : graph.states) at(s.before) = g.state(s.name, type(s.before)).id();
  for (const auto& w : graph.weights) at(w.value) = g.weight(w.name, type(w.value)).id();
  for (const auto& node : graph.nodes) {
    ir::ValueList in;
    for (const int32_t id : node.inputs) in.push_back(id < 0 ? ir::Value() : g.value(at(id)));
    const auto out = node.op->primitive() ? g.call(*node.op, in, node.attrs)
                                          : ir::inline_primitives(g, *node.op, in, node.attrs);
    WEFT_CHECK(Status(g.status()));
    for (size_t k = 0; k < node.outputs.size(); ++k) at(node.outputs[k]) = out[k].id();
  }
  for (const auto& o : graph.outputs) g.output(o.name, g.value(at(o.value)));
  for (size_t i = 0; i < graph.states.size(); ++i) g.states[i].after = at(graph.states[i].after);
  if (kept) *kept = std::move(to);
  return g;
}

Result<std::vector<Bounded>> bound_op(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                      const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  std::vector<Bounded> in;
  for (const auto& a : inputs) types.push_back({a.dtype, to_shape(a.shape)}), in.push_back(exactly(a));
  WEFT_TRY(const auto graph, graph_of(op, attrs, types));
  const auto all = bound_graph(graph, std::move(in));
  std::vector<Bounded> out;
  for (const auto& o : graph.outputs) out.push_back(all[static_cast<size_t>(o.value)]);
  if (op.primitive()) {  // alone, an op that rounds correctly once is exact
    const std::string_view name = op.name;
    const bool exact = name == "cast" || name == "full" || name == "iota";
    for (auto& b : out)
      if (exact) b.error.assign(b.error.size(), 0);
  }
  // A composite defines a zero's sign if every step of its decomposition does. einsum's steps depend on
  // sizes: a mul in one is a sum of one product, from zero, in another.
  const bool bitwise =
      op.name != std::string_view("einsum") &&
      std::ranges::all_of(graph.nodes, [](const ir::Node& n) { return find_rule(n.op->name)->bitwise; });
  for (auto& b : out) b.bitwise = bitwise;
  return out;
}

// The error of one element in units of its bound: up to 1 is right.
static Real off_by(Real got, const Bounded& want, size_t i, Real allowed) {
  const Real truth = want.value.v[i], nearest = round_to(want.value.dtype, truth);
  if (allowed == kInf) return 0;  // anything is right
  if (std::isnan(nearest) || std::isnan(got)) return std::isnan(nearest) == std::isnan(got) ? Real{0} : kInf;
  if (allowed == 0)
    return got == nearest && (!want.bitwise || std::signbit(got) == std::signbit(nearest)) ? Real{0} : kInf;
  if (std::isinf(got) || std::isinf(nearest)) return got == nearest ? Real{0} : kInf;
  return std::fabs(got - truth) / allowed;
}

// Integers print in full.
static std::string in_words(DType t, Real x) {
  if (std::isnan(x)) return "nan";
  if (is_float(t)) return fmt::format("{:.17g}", static_cast<double>(x));
  return x < 0 ? fmt::format("{}", static_cast<int64_t>(x)) : fmt::format("{}", static_cast<uint64_t>(x));
}

Verdict judge(const Array& got, const Bounded& want, Real slack) {
  if (got.dtype != want.value.dtype || got.shape != want.value.shape)
    return {false, fmt::format("got {}, want {}", text(type_of(got)), text(type_of(want.value))), kInf};
  Verdict v;
  for (size_t i = 0; i < got.v.size(); ++i) {
    // The oracle's own error is 2^-11 of an f64 rounding.
    const Real allowed = want.error[i] * slack * (1 + 0x1p-10L);
    const Real off = off_by(got.v[i], want, i, allowed);
    if (off <= v.worst) continue;
    v.worst = off, v.ok = v.ok && off <= 1;
    v.reason =
        fmt::format("element {} of {}: got {}, want {} +- {:.3g}", i, text(type_of(got)),
                    in_words(got.dtype, got.v[i]), in_words(got.dtype, want.value.v[i]), double(allowed));
  }
  return v;
}

}  // namespace weft::conformance

#include "conformance/bounds.h"

#include <cmath>

#include "ir/lower.h"

namespace weft::conformance {
namespace {

using Errors = std::vector<Real>;

// Halves are computed in f32 and rounded once more.
DType compute_type(DType t) { return is_half(t) ? DType::f32 : t; }

// The rounding of a result of size |y| + error: c ulp of the compute type, and for halves half an ulp of
// their own. An ulp is at most eps |y|, and never less than the least subnormal.
Real rounding(DType t, Real size, Real c) {
  if (!is_float(t) || size == 0 || c == 0) return 0;
  const auto ulps = [&](DType type, Real n) {
    return n * std::max(format(type).eps() * size, format(type).least());
  };
  return ulps(compute_type(t), c) + (is_half(t) ? ulps(t, 0.5L) : Real{0});
}

// gamma(n) = n u / (1 - n u): n roundings of u = eps / 2 each (Higham, Accuracy and stability, lemma 3.1).
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
/// The call's own op on other operands, as f64 so that nothing wraps around.
Errors run(const BoundCall& c, std::vector<Array> in) {
  std::vector<const Array*> pointers;
  for (auto& a : in) {
    if (!is_float(a.dtype)) a.dtype = DType::f64;
    pointers.push_back(&a);
  }
  return evaluate<Real>(c.op, c.attrs, pointers)[0].v;
}

/// f(a, ea, b, eb, y) over the elements of a broadcast pair.
template <class F>
Errors pairwise(const BoundCall& c, F f) {
  const auto spread = [&](const Bounded& x) {
    return std::pair{broadcast(x.value, c.out.shape).v, broadcast(like(x.value, x.error), c.out.shape).v};
  };
  const auto [a, ea] = spread(*c.in[0]);
  const auto [b, eb] = spread(*c.in[1]);
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) e.push_back(f(a[i], ea[i], b[i], eb[i], std::fabs(c.out.v[i])));
  return e;
}
/// A result's carried error with its own rounding on top.
Real with_rounding(const BoundCall& c, Real y, Real carried) {
  return carried + rounding(c.out.dtype, y + carried, c.c);
}

// The sum of two subnormals is exact: what is too small for eps |y| to be a step needs no rounding.
Errors add_sub(const BoundCall& c) {
  return pairwise(c, [&](Real, Real ea, Real, Real eb, Real y) {
    const DType t = c.out.dtype;
    const bool exact = is_float(t) && y + ea + eb < format(t).least_normal();
    return exact ? ea + eb : with_rounding(c, y, ea + eb);
  });
}
Errors mul(const BoundCall& c) {
  return pairwise(c, [&](Real a, Real ea, Real b, Real eb, Real y) {
    return with_rounding(c, y, std::fabs(a) * eb + std::fabs(b) * ea + ea * eb);
  });
}
Errors div(const BoundCall& c) {
  return pairwise(c, [&](Real, Real ea, Real b, Real eb, Real y) {
    const Real carried = ea == 0 && eb == 0  ? Real{0}
                         : eb < std::fabs(b) ? (ea + y * eb) / (std::fabs(b) - eb)
                                             : kInf;
    return with_rounding(c, y, carried);
  });
}
Errors compare(const BoundCall& c) {
  return pairwise(c, [](Real a, Real ea, Real b, Real eb, Real) {
    return ea + eb > 0 && std::fabs(a - b) <= ea + eb ? Real{1} : Real{0};
  });
}

/// f(x, e) = how far the function moves when x moves by e.
template <class F>
Errors unary(const BoundCall& c, F f) {
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) {
    const Real x = c.in[0]->value.v[i], ex = c.in[0]->error[i];
    e.push_back(with_rounding(c, std::fabs(c.out.v[i]), ex == 0 ? Real{0} : f(x, ex)));
  }
  return e;
}
Errors exp(const BoundCall& c) {
  return unary(c, [](Real x, Real e) { return std::exp(x + e) - std::exp(x); });
}
Errors log(const BoundCall& c) {
  return unary(c, [](Real x, Real e) { return e < x ? -std::log1p(-e / x) : kInf; });
}
Errors sqrt(const BoundCall& c) {
  return unary(c, [](Real x, Real e) { return e <= x ? e / (std::sqrt(x) + std::sqrt(x - e)) : kInf; });
}

// Sums: `terms` = sum of |terms|, and how many roundings each output sees. A product may lose half a
// subnormal step.
Errors summed(const BoundCall& c, const Errors& terms, const Errors& carried, const Errors& roundings,
              bool products) {
  const DType t = c.out.dtype;
  Errors e;
  for (size_t i = 0; i < c.out.v.size(); ++i) {
    const Real size = terms[i] + carried[i];
    Real own = gamma(t, std::max<Real>(0, roundings[i])) * size;
    if (products && size != 0) own += roundings[i] * format(compute_type(t)).least();
    if (is_half(t)) own += rounding(t, std::fabs(c.out.v[i]) + carried[i] + own, 0.5L);
    e.push_back(carried[i] + own);
  }
  return e;
}
Errors sum(const BoundCall& c) {
  const Bounded& x = *c.in[0];
  const Errors ones(x.value.v.size(), 1);
  Errors roundings = run(c, {like(x.value, ones)});
  for (Real& n : roundings) n -= 1;
  return summed(c, run(c, {like(x.value, absolute(x.value))}), run(c, {like(x.value, x.error)}), roundings,
                false);
}
Errors matmul(const BoundCall& c) {
  const auto &a = *c.in[0], &b = *c.in[1];
  const Array aa = like(a.value, absolute(a.value)), bb = like(b.value, absolute(b.value));
  const Array ea = like(a.value, a.error), eb = like(b.value, b.error);
  const Array one_a = like(a.value, Errors(aa.v.size(), 1)), one_b = like(b.value, Errors(bb.v.size(), 1));
  Errors carried = run(c, {aa, eb});
  const Errors second = run(c, {ea, bb}), both = run(c, {ea, eb});
  for (size_t i = 0; i < carried.size(); ++i) carried[i] += second[i] + both[i];
  return summed(c, run(c, {aa, bb}), carried, run(c, {one_a, one_b}), true);
}
Errors scatter_add(const BoundCall& c) {
  const auto &x = *c.in[0], &index = *c.in[1], &u = *c.in[2];
  const Errors none(x.value.v.size(), 0), ones(u.value.v.size(), 1);
  return summed(c, run(c, {like(x.value, absolute(x.value)), index.value, like(u.value, absolute(u.value))}),
                run(c, {like(x.value, x.error), index.value, like(u.value, u.error)}),
                run(c, {like(x.value, none), index.value, like(u.value, ones)}), false);
}
Errors max(const BoundCall& c) {
  Errors e = run(c, {like(c.in[0]->value, c.in[0]->error)});
  for (Real& v : e) v = std::max<Real>(v, 0);  // of nothing: -inf
  return e;
}

// Elements that only move take their errors along.
Errors moved(const BoundCall& c) {
  std::vector<Array> in;
  for (size_t i = 0; i < c.in.size(); ++i)
    in.push_back(i == 0 ? like(c.in[i]->value, c.in[i]->error) : c.in[i]->value);
  return run(c, std::move(in));
}
Errors padded(const BoundCall& c) {
  std::vector<AttrValue> attrs(c.attrs.begin(), c.attrs.end());
  for (size_t i = 0; i < attrs.size(); ++i)
    if (std::string_view(c.op.attrs[i].name) == "value") attrs[i] = 0.0;
  return moved({c.op, attrs, c.in, c.out, c.c});
}
Errors where(const BoundCall& c) {
  const auto spread = [&](const Array& x, const Errors& v) { return broadcast(like(x, v), c.out.shape).v; };
  const auto &k = *c.in[0], &a = *c.in[1], &b = *c.in[2];
  const Errors condition = spread(k.value, k.value.v), unsure = spread(k.value, k.error);
  const Errors va = spread(a.value, a.value.v), vb = spread(b.value, b.value.v);
  const Errors ea = spread(a.value, a.error), eb = spread(b.value, b.error);
  Errors e;
  for (size_t i = 0; i < condition.size(); ++i)
    e.push_back(unsure[i] != 0      ? std::max(ea[i], eb[i]) + std::fabs(va[i] - vb[i])
                : condition[i] != 0 ? ea[i]
                                    : eb[i]);
  return e;
}
Errors cast(const BoundCall& c) {
  const auto& x = *c.in[0];
  Errors e;
  for (size_t i = 0; i < x.error.size(); ++i) {
    const Real v = x.value.v[i], ex = x.error[i];
    if (is_float(c.out.dtype)) {
      const Real step = format(c.out.dtype).spacing(std::fabs(c.out.v[i]) + ex);
      e.push_back(ex == 0 && round_to(c.out.dtype, v) == v ? Real{0} : ex + step / 2);
    } else {
      const bool sure = ex == 0 || round_to(c.out.dtype, v - ex) == round_to(c.out.dtype, v + ex);
      e.push_back(sure ? Real{0} : ex + 1);
    }
  }
  return e;
}
Errors constant(const BoundCall& c) {
  Errors e;
  for (const Real v : c.out.v) e.push_back(std::fabs(round_to(c.out.dtype, v) - v));
  return e;
}
Errors none(const BoundCall& c) { return Errors(c.out.v.size(), 0); }

// The loosest languages that kernels are rendered to set the c of div (2.5 ulp), exp, log and sqrt (3 ulp):
// OpenCL C 3.0, table "ULP values for single precision built-in math functions". An ulp is at most one eps of
// the result.
constexpr BoundRule kRules[] = {
    {"add", "one rounding: eps/2 |y|, after ea + eb", 0.5L, add_sub},
    {"sub", "one rounding: eps/2 |y|, after ea + eb", 0.5L, add_sub},
    {"mul", "one rounding: eps/2 |y|, after |a| eb + |b| ea + ea eb", 0.5L, mul},
    {"div", "2.5 eps |y|, after (ea + |y| eb) / (|b| - eb)", 2.5L, div},
    {"exp", "3 eps |y|, after exp(x + e) - exp(x)", 3, exp},
    {"log", "3 eps |y|, after -log(1 - e / x)", 3, log},
    {"sqrt", "3 eps |y|, after sqrt(x) - sqrt(x - e)", 3, sqrt},
    {"less", "exact; unsure where |a - b| <= ea + eb", 0, compare},
    {"equal", "exact; unsure where |a - b| <= ea + eb", 0, compare},
    {"where", "exact; an unsure condition adds |a - b|", 0, where},
    {"sum", "n - 1 additions in any order: gamma(n - 1) sum|x|; halves round once more", 0.5L, sum},
    {"max", "exact; the largest of the errors", 0, max},
    {"matmul", "k products and k - 1 additions in any order: gamma(k) sum|a||b|; halves round once more",
     0.5L, matmul},
    {"scatter_add", "m additions to an element: gamma(m) (|x| + sum|u|)", 0.5L, scatter_add},
    {"broadcast", "exact: moves", 0, moved},
    {"reshape", "exact: moves", 0, moved},
    {"slice", "exact: moves", 0, moved},
    {"pad", "exact: moves; the value is rounded to the dtype", 0, padded},
    {"gather", "exact: moves", 0, moved},
    {"cast", "exact: correctly rounded, so half a step when something else reads it", 0, cast},
    {"full", "exact: correctly rounded, so its rounding when something else reads it", 0, constant},
    {"random_bits", "exact: integers", 0, none},
};

constexpr std::string_view kBitwise[] = {"where", "broadcast", "reshape", "slice", "pad", "gather", "cast"};

// What leaves a dtype's range is infinite in it; where the error straddles the edge, nothing can be said.
void overflow(Bounded& b) {
  if (!is_float(b.value.dtype)) return;
  const DType t = b.value.dtype;
  for (size_t i = 0; i < b.error.size(); ++i) {
    Real &v = b.value.v[i], &e = b.error[i];
    if (!std::isfinite(v)) {
      e = 0;
    } else if (std::isnan(e)) {
      e = kInf;
    } else if (std::fabs(round_to(t, std::fabs(v) + e)) > format(t).largest) {
      const bool sure = std::fabs(round_to(t, std::fabs(v) - e)) > format(t).largest;
      if (sure)
        v = round_to(t, v), e = 0;
      else if (e != 0)
        e = kInf;
    }
  }
}

}  // namespace

std::span<const BoundRule> bound_rules() { return kRules; }

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
  for (const auto& rule : kRules)
    if (std::string_view(rule.op) == op.name)
      out[0].error = rule.propagate({op, attrs, in, out[0].value, rule.c});
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
  if (op.primitive()) {  // alone, an op that rounds once and rightly is exact
    const bool exact = std::string_view(op.name) == "cast" || std::string_view(op.name) == "full";
    for (auto& b : out) {
      if (exact) b.error.assign(b.error.size(), 0);
      for (const auto name : kBitwise) b.bitwise |= name == op.name;
    }
  }
  return out;
}

// How far off one element is, in units of what is allowed there: up to 1 is right.
static Real off_by(Real got, const Bounded& want, size_t i, Real allowed) {
  const Real truth = want.value.v[i], nearest = round_to(want.value.dtype, truth);
  if (std::isnan(nearest) || std::isnan(got)) return std::isnan(nearest) == std::isnan(got) ? Real{0} : kInf;
  if (allowed == 0)
    return got == nearest && (!want.bitwise || std::signbit(got) == std::signbit(nearest)) ? Real{0} : kInf;
  if (std::isinf(got) || std::isinf(nearest)) return got == nearest || allowed == kInf ? Real{0} : kInf;
  return std::fabs(got - truth) / allowed;
}

Verdict judge(const Array& got, const Bounded& want, Real slack) {
  if (got.dtype != want.value.dtype || got.shape != want.value.shape)
    return {false, fmt::format("got {}, want {}", text(type_of(got)), text(type_of(want.value))), kInf};
  Verdict v;
  for (size_t i = 0; i < got.v.size(); ++i) {
    // The oracle itself is 2^-11 of an f64 rounding away from the truth.
    const Real allowed = want.error[i] * slack * (1 + 0x1p-10L);
    const Real off = off_by(got.v[i], want, i, allowed);
    if (off <= v.worst) continue;
    v.worst = off, v.ok = off <= 1;
    v.reason = fmt::format("element {} of {}: got {:.17g}, want {:.17g} +- {:.3g}", i, text(type_of(got)),
                           double(got.v[i]), double(want.value.v[i]), double(allowed));
  }
  return v;
}

}  // namespace weft::conformance

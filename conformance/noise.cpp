#include "conformance/noise.h"

#include <cmath>
#include <functional>

#include "conformance/rules.h"
#include "eager/apply.h"
#include "weft/backends.h"

namespace weft::conformance {
int64_t accumulated_terms(const ir::Graph& graph, const ir::Node& node) {
  const auto count_of = [&](int32_t id) { return element_count(graph.types[size_t(id)].shape).value(); };
  const std::string_view op = node.op->name;
  if (op == "sum") return count_of(node.inputs[0]) / std::max<int64_t>(1, count_of(node.outputs[0]));
  const auto axis = [&](size_t i, size_t d) { return graph.types[size_t(node.inputs[i])].shape[d].value(); };
  const auto each = [&](size_t i, size_t d) {
    return count_of(node.inputs[i]) / std::max<int64_t>(1, axis(i, d));
  };
  if (op == "conv") return each(1, 0);              // c / groups, k...
  if (op == "conv_transpose") return each(1, 1);    // o, k...: not all of them meet
  if (op == "conv_weight_grad") return each(1, 1);  // n, p...
  if (op != "matmul") return 1;
  const bool transposed = std::get<int64_t>(node.attrs[0]) != 0;
  const size_t rank = graph.types[static_cast<size_t>(node.inputs[0])].shape.size();
  return axis(0, rank - (transposed ? 2 : 1));
}

namespace {

DType widened(DType t) { return is_float(t) ? DType::f64 : t; }

/// The same primitives with every float as f64; values keep their numbers.
Result<ir::Graph> in_f64(const ir::Graph& graph) {
  ir::Graph g;
  const auto type = [&](int32_t id) {
    TensorType t = graph.types[static_cast<size_t>(id)];
    t.dtype = widened(t.dtype);
    return t;
  };
  for (const auto& i : graph.inputs) g.input(i.name, type(i.value));
  for (const auto& s : graph.states) g.state(s.name, type(s.before));
  for (const auto& w : graph.weights) g.weight(w.name, type(w.value));
  for (const auto& node : graph.nodes) {
    ir::ValueList in;
    for (const int32_t id : node.inputs) in.push_back(id < 0 ? ir::Value() : g.value(id));
    auto attrs = node.attrs;
    for (size_t i = 0; i < attrs.size(); ++i)
      if (node.op->attrs[i].kind == ir::AttrKind::dtype)
        attrs[i] = std::string(name(widened(*dtype_from_name(std::get<std::string>(attrs[i])))));
    g.call(*node.op, in, std::move(attrs));
    WEFT_CHECK(Status(g.status()));
  }
  for (const auto& o : graph.outputs) g.output(o.name, g.value(o.value));
  if (g.types.size() != graph.types.size())
    return fail(Code::internal, "a graph of {} values has {} in f64", graph.types.size(), g.types.size());
  return g;
}

using AfterNode = std::function<Tensor(const ir::Node&, int32_t value, Tensor)>;

/// All values of a graph, run op by op. `after` may replace each result.
std::vector<Tensor> run_values(const ir::Graph& graph, const std::vector<Array>& inputs,
                               const std::string& backend, const AfterNode& after) {
  std::vector<Tensor> values(graph.types.size());
  size_t next = 0;
  const auto enter = [&](int32_t id) {
    Array a = inputs.at(next++);
    a.dtype = graph.types[static_cast<size_t>(id)].dtype;
    values[static_cast<size_t>(id)] = to_tensor(a, backend);
  };
  for (const auto& i : graph.inputs) enter(i.value);
  for (const auto& s : graph.states) enter(s.before);
  for (const auto& w : graph.weights) enter(w.value);
  const NoGrad off;
  for (const auto& node : graph.nodes) {
    std::vector<Tensor> in, out(node.outputs.size());
    std::vector<const Tensor*> pointers;
    in.reserve(node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      in.push_back(node.inputs[i] < 0 ? Tensor() : values[static_cast<size_t>(node.inputs[i])]);
      bool updated = false;
      for (const auto& u : node.op->updates) updated |= u.input == static_cast<int>(i);
      if (updated)
        in.back() = to_tensor(from_tensor(in.back()), backend);  // a value of a graph never changes
      pointers.push_back(&in.back());
    }
    eager::apply(*node.op, pointers, node.attrs, out);
    for (size_t k = 0; k < out.size(); ++k)
      values[static_cast<size_t>(node.outputs[k])] = after ? after(node, node.outputs[k], out[k]) : out[k];
  }
  return values;
}

bool rounds(const ir::OpDef& op) {
  const Rule* rule = find_rule(op.name);
  return !rule || rule->c > 0;
}

// To the neighbour above or below, the nearer one more often, so that the mean is unchanged. An f64 result is
// already rounded: it moves to a neighbour half of the time.
Real randomly_rounded(Real x, DType t, bool inexact, Random& random) {
  if (!std::isfinite(x)) return x;
  if (t == DType::f64) {
    const double u = random.uniform();
    if (!inexact || u < 0.5) return x;
    return std::nextafter(static_cast<double>(x), u < 0.75 ? -HUGE_VAL : HUGE_VAL);
  }
  const Real step = format(t).spacing(x), below = std::floor(x / step);
  const Real rounded = (below + (random.uniform() < static_cast<double>(x / step - below) ? 1 : 0)) * step;
  return std::fabs(rounded) > format(t).largest ? round_to(t, rounded) : rounded;
}

// The bound of the op that makes this value, for exact operands. What rounds nothing, such as a reshape,
// hands on the bound of the op before it.
std::vector<Real> own_bound(const ir::Graph& graph, int32_t value, const std::vector<Tensor>& truth) {
  for (const auto& node : graph.nodes)
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] != value) continue;
      const bool hands_on = !rounds(*node.op) && is_float(graph.types[static_cast<size_t>(value)].dtype);
      std::vector<Bounded> operands;
      for (const int32_t id : node.inputs) {
        if (id < 0) continue;
        Array a = from_tensor(truth[static_cast<size_t>(id)]);
        a.dtype = graph.types[static_cast<size_t>(id)].dtype;
        operands.push_back(exactly(std::move(a)));
        if (!hands_on) continue;
        if (auto before = own_bound(graph, id, truth); !before.empty())
          operands.back().error = std::move(before);
      }
      std::vector<const Bounded*> in;
      for (const auto& o : operands) in.push_back(&o);
      return bound_primitive(*node.op, node.attrs, in)[k].error;
    }
  return {};
}

// What kernels may do to a result beside rounding it once. Partial sums are intermediates too: `reference`
// keeps them in double, but a backend may keep them in f32. Rounding n of them walks at random, so it comes
// to the op's bound, where all go one way, divided by sqrt(n). A function such as tanh may be off by some
// units in the last place: by the op's bound. Source: Higham and Mary, A new approach to probabilistic
// rounding error analysis (SISC 2019).
std::vector<std::vector<Real>> noise_of_ops(const ir::Graph& graph, const std::vector<Tensor>& truth) {
  std::vector<std::vector<Real>> noise(graph.types.size());
  for (const auto& node : graph.nodes) {
    const int64_t n = accumulated_terms(graph, node);
    const Rule* rule = find_rule(node.op->name);
    if (n < 2 && !(rule && rule->c > 1)) continue;
    auto& sizes = noise[static_cast<size_t>(node.outputs[0])];
    sizes = own_bound(graph, node.outputs[0], truth);
    for (Real& s : sizes) s /= std::sqrt(static_cast<Real>(n));
  }
  return noise;
}

// By what a noisy run says of a result before it is rounded itself: after that, many small deviations are
// none.
void widen(Bounded& b, const Array& noisy) {
  for (size_t i = 0; i < noisy.v.size(); ++i) {
    if (!std::isfinite(b.value.v[i])) continue;
    const Real off = std::fabs(noisy.v[i] - b.value.v[i]);
    b.error[i] = std::max(b.error[i], std::isnan(off) ? kInf : kNoiseFactor * off);
  }
}

}  // namespace

Result<std::vector<Bounded>> noise_bound(const ir::Graph& graph, const std::vector<Array>& inputs,
                                         uint64_t seed) {
  for (const auto& t : graph.types)
    for (const Dim d : t.shape)
      if (!d.is_const()) return invalid("noise bound: dimension {} of {} has no value", d.text(), text(t));
  WEFT_TRY(const ir::Graph low, lowered(graph));
  WEFT_TRY(const ir::Graph wide, in_f64(low));
  const auto truth = run_values(wide, inputs, "reference", nullptr);
  std::vector<Bounded> bounds;
  for (const auto& o : low.outputs) {
    Array value = from_tensor(truth[static_cast<size_t>(o.value)]);
    value.dtype = low.types[static_cast<size_t>(o.value)].dtype;
    bounds.push_back(exactly(std::move(value)));
  }
  const auto noise = noise_of_ops(low, truth);
  Random random(seed);
  for (int run = 0; run < kNoiseRuns; ++run)
    (void)run_values(wide, inputs, "reference", [&](const ir::Node& node, int32_t id, Tensor t) {
      const DType own = low.types[static_cast<size_t>(id)].dtype;
      Array a = from_tensor(t);
      for (size_t k = 0; k < bounds.size(); ++k)
        if (low.outputs[k].value == id) widen(bounds[k], a);
      if (!is_float(own)) return t;
      const auto& sizes = noise[static_cast<size_t>(id)];
      for (size_t i = 0; i < sizes.size(); ++i) a.v[i] += sizes[i] * (2 * Real(random.uniform()) - 1);
      const bool inexact = rounds(*node.op);
      for (Real& v : a.v) v = randomly_rounded(v, own, inexact, random);
      return to_tensor(a, "reference");
    });
  for (size_t k = 0; k < bounds.size(); ++k) {
    const auto own = own_bound(low, low.outputs[k].value, truth);
    for (size_t i = 0; i < own.size(); ++i) bounds[k].error[i] += own[i];
  }
  return bounds;
}

Result<std::vector<Array>> run_graph(const ir::Graph& graph, const std::vector<Array>& inputs,
                                     const std::string& backend) {
  try {
    const OnBackend on(backend);  // for ops without operands
    const auto values = run_values(graph, inputs, backend, nullptr);
    std::vector<Array> out;
    for (const auto& o : graph.outputs) out.push_back(from_tensor(values[static_cast<size_t>(o.value)]));
    return out;
  } catch (const Error& e) {
    return e.status();
  }
}

}  // namespace weft::conformance

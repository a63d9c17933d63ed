#include "conformance/graphs/fused.h"

#include <algorithm>
#include <set>

#include "compiler/recompose.h"
#include "conformance/noise.h"

namespace weft::conformance {
namespace {

using Numbers = std::array<Array, kDataSets>;

// Builds a graph anew, value by value.
class Copy {
 public:
  explicit Copy(const ir::Graph& from) : from_(from), to_(from.types.size()) {}

  ir::Graph graph;

  /// Inputs, states and weights, in the types that `type` gives.
  template <class F>
  void begin(const F& type) {
    for (const auto& i : from_.inputs) at(i.value) = graph.input(i.name, type(i.value, true));
    for (const auto& s : from_.states) at(s.before) = graph.state(s.name, type(s.before, false));
    for (const auto& w : from_.weights) at(w.value) = graph.weight(w.name, type(w.value, false));
  }
  ir::ValueList operands(const ir::Node& node) {
    ir::ValueList in;
    for (const int32_t id : node.inputs) in.push_back(id < 0 ? ir::Value() : at(id));
    return in;
  }
  void give(const ir::Node& node, const ir::ValueList& out) {
    for (size_t k = 0; k < node.outputs.size(); ++k) at(node.outputs[k]) = out[k];
  }
  void end() {
    for (const auto& o : from_.outputs) graph.output(o.name, at(o.value));
    for (size_t i = 0; i < from_.states.size(); ++i) graph.states[i].after = at(from_.states[i].after).id();
  }
  ir::Value& at(int32_t id) { return to_[static_cast<size_t>(id)]; }
  const TensorType& old_type(int32_t id) const { return from_.types[static_cast<size_t>(id)]; }

 private:
  const ir::Graph& from_;
  std::vector<ir::Value> to_;
};

// ---- small ops in the place of composite ones

bool may_be_written_out(const ir::Node& node) {
  return !node.op->primitive() && updates_of(*node.op).empty() &&
         !ir::has(node.op->traits, ir::Trait::random);
}

size_t write_out(ir::Graph& g, Random& random) {
  Copy copy(g);
  copy.begin([&](int32_t id, bool) { return copy.old_type(id); });
  size_t written = 0;
  for (const auto& node : g.nodes) {
    const bool here = may_be_written_out(node) && random.uniform() < 0.6;
    written += here;
    copy.give(node, here ? ir::expand(copy.graph, *node.op, copy.operands(node), node.attrs)
                         : copy.graph.call(*node.op, copy.operands(node), node.attrs));
  }
  copy.end();
  if (copy.graph.status().ok()) g = std::move(copy.graph);
  return copy.graph.status().ok() ? written : 0;
}

// ---- a symbol in the place of a size

TensorType with(TensorType t, Dim from, Dim to) {
  std::ranges::replace(t.shape, from, to);
  return t;
}
bool has_symbol(const TensorType& t) {
  return std::ranges::any_of(t.shape, [](Dim d) { return !d.is_const(); });
}
Bindings size_of(const std::string& name, int64_t value) {
  Bindings b;
  raise_if(b.bind(name, value));
  return b;
}
Shape at_size(const Shape& shape, const Bindings& sizes) {
  return to_shape(value_or_raise(evaluate(std::span<const Dim>(shape), sizes)));
}

// Sizes among attributes; other lists of numbers, such as axes and strides, are none.
std::vector<AttrValue> with(const ir::Node& node, int64_t from, Dim to) {
  static const std::set<std::string_view> kSizes = {"shape", "size", "start", "stop"};
  auto attrs = node.attrs;
  for (size_t i = 0; i < attrs.size(); ++i)
    if (auto* dims = std::get_if<Shape>(&attrs[i]); dims && kSizes.count(node.op->attrs[i].name))
      std::ranges::replace(*dims, Dim(from), to);
  return attrs;
}

// A valid index may be none at another size.
bool has_indices(const ir::Graph& g) {
  return std::ranges::any_of(g.nodes, [&](const ir::Node& n) {
    return !ir::has(n.op->traits, ir::Trait::elementwise) && std::ranges::any_of(n.inputs, [&](int32_t id) {
      return id >= 0 && !is_float(g.types[static_cast<size_t>(id)].dtype);
    });
  });
}

// Every input's axes of this size become the symbol; none where some op wants the number.
std::optional<ir::Graph> symbolic(const ir::Graph& g, int64_t size, Dim symbol, const std::string& name) {
  Copy copy(g);
  copy.begin([&](int32_t id, bool input) {
    return input ? with(copy.old_type(id), Dim(size), symbol) : copy.old_type(id);
  });
  const Bindings sizes = size_of(name, size);
  bool reaches = false;
  for (const auto& node : g.nodes) {
    const auto in = copy.operands(node);
    std::vector<const TensorType*> types;
    bool symbols = false;
    for (const ir::Value v : in)
      types.push_back(v ? &v.type() : nullptr), symbols |= v && has_symbol(v.type());
    const auto fits = [&](const std::vector<AttrValue>& attrs) {
      const auto out = node.op->infer(ir::Types(types), attrs);
      for (size_t k = 0; out.ok() && k < node.outputs.size(); ++k)
        if (!(at_size(out.value()[k].shape, sizes) == copy.old_type(node.outputs[k]).shape)) return false;
      return out.ok();
    };
    auto attrs = symbols ? with(node, size, symbol) : node.attrs;
    if (!fits(attrs)) return std::nullopt;
    copy.give(node, copy.graph.call(*node.op, in, std::move(attrs)));
  }
  copy.end();
  for (const auto& o : copy.graph.outputs)
    reaches |= has_symbol(copy.graph.types[static_cast<size_t>(o.value)]);
  return reaches && copy.graph.status().ok() ? std::optional(std::move(copy.graph)) : std::nullopt;
}

// ---- numbers

// The elements of `a` in another shape, again and again where it is larger.
Array resized(const Array& a, const Dims& shape) {
  Array out{a.dtype, shape, {}};
  for (int64_t i = 0; i < count(shape); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      from += rest % shape[d] % a.shape[d] * stride;
      rest /= shape[d], stride *= a.shape[d];
    }
    out.v.push_back(a.v[static_cast<size_t>(from)]);
  }
  return out;
}

// The graph at these sizes, with the truth and derived bound of each value.
Result<GraphCase> valued(const ir::Graph& g, const Bindings& sizes, const std::vector<Numbers>& beginnings) {
  Copy copy(g);
  copy.begin([&](int32_t id, bool) {
    return TensorType{copy.old_type(id).dtype, at_size(copy.old_type(id).shape, sizes)};
  });
  GraphCase c;
  for (size_t i = 0; i < beginnings.size(); ++i) {
    Dims shape;
    for (const Dim d : copy.graph.types[i].shape) shape.push_back(d.value());
    for (size_t set = 0; set < kDataSets; ++set)
      c.values[set].push_back(exactly(resized(beginnings[i][set], shape)));
  }
  for (const auto& node : g.nodes) {
    const auto in = copy.operands(node);
    auto attrs = node.attrs;
    for (auto& a : attrs)
      if (auto* dims = std::get_if<Shape>(&a)) *dims = at_size(*dims, sizes);
    OperandSets operands;
    for (size_t set = 0; set < kDataSets; ++set)
      for (const auto v : in)
        operands[set].push_back(v ? &c.values[set][static_cast<size_t>(v.id())] : nullptr);
    WEFT_TRY(auto bounded, bound_call(*node.op, attrs, operands));
    const auto out = copy.graph.call(*node.op, in, std::move(attrs));
    WEFT_CHECK(Status(copy.graph.status()));
    for (size_t set = 0; set < kDataSets; ++set)
      for (auto& b : bounded[set]) c.values[set].push_back(std::move(b));
    copy.give(node, out);
  }
  copy.end();
  c.graph = std::move(copy.graph);
  return c;
}

std::vector<int32_t> judged_values(const ir::Graph& g) {
  std::vector<int32_t> all;
  for (const auto& o : g.outputs) all.push_back(o.value);
  for (const auto& s : g.states) all.push_back(s.after);
  return all;
}
bool all_sure(const GraphCase& c) {
  return std::ranges::all_of(judged_values(c.graph), [&](int32_t id) {
    return std::ranges::all_of(c.values,
                               [&](const auto& set) { return is_sure(set[static_cast<size_t>(id)]); });
  });
}

// What is judged gets the noise bound of the graph in the place of the derived one, the widest of those that
// `seeds` give.
Status measure_noise(GraphCase& c, uint64_t seeds) {
  ir::Graph g = c.graph;
  g.outputs.clear();
  const auto judged = judged_values(c.graph);
  for (const int32_t id : judged) g.outputs.push_back({"", id});
  for (auto& set : c.values) {
    std::vector<Array> in;
    for (size_t i = 0; i < g.inputs.size() + g.states.size() + g.weights.size(); ++i)
      in.push_back(set[i].value);
    WEFT_TRY(auto bounds, noise_bound(g, in, 1));
    for (uint64_t seed = 2; seed <= seeds; ++seed) {
      WEFT_TRY(const auto more, noise_bound(g, in, seed));
      for (size_t k = 0; k < bounds.size(); ++k)
        std::ranges::transform(bounds[k].error, more[k].error, bounds[k].error.begin(),
                               [](Real a, Real b) { return std::max(a, b); });
    }
    for (size_t k = 0; k < judged.size(); ++k) set[static_cast<size_t>(judged[k])] = bounds[k];
  }
  return {};
}

// Inputs, states, weights: the order in which a Copy makes them.
std::vector<Numbers> beginnings_of(const GraphCase& c) {
  std::vector<Numbers> all;
  const auto add = [&](int32_t id) {
    Numbers n;
    for (size_t set = 0; set < kDataSets; ++set) n[set] = c.values[set][static_cast<size_t>(id)].value;
    all.push_back(std::move(n));
  };
  for (const auto& i : c.graph.inputs) add(i.value);
  for (const auto& s : c.graph.states) add(s.before);
  for (const auto& w : c.graph.weights) add(w.value);
  return all;
}

}  // namespace

Result<FusedCase> fused_case(uint64_t seed) {
  const GraphCase plain = random_graph(seed);
  Random random(seed ^ 0x66757365);  // does not disturb what the seed draws elsewhere
  FusedCase c{.seed = seed, .graph = plain.graph, .at = {}};
  std::set<int64_t> candidates;
  for (const auto& i : plain.graph.inputs)
    for (const Dim d : plain.graph.types[static_cast<size_t>(i.value)].shape)
      if (d.value() > 1 && !has_indices(plain.graph)) candidates.insert(d.value());
  std::vector<int64_t> sizes = {1};
  std::string name = "none";
  for (const int64_t n : candidates) {
    name = fmt::format("size{}", n);
    if (auto g = symbolic(plain.graph, n, Dim::symbol(name, 1, 2 * n), name)) {
      c.graph = std::move(*g), c.has_symbol = true;
      const auto other = [&] {
        return 1 + static_cast<int64_t>(random.bits() % static_cast<uint64_t>(2 * n));
      };
      sizes = {n, other(), other()};
      break;
    }
  }
  c.written_out = write_out(c.graph, random);
  const auto beginnings = beginnings_of(plain);
  for (const int64_t size : sizes) {
    auto at = valued(c.graph, size_of(name, size), beginnings);
    if (at.ok() && all_sure(*at)) {
      at->seed = seed;
      WEFT_CHECK(measure_noise(*at, 1));
      c.at.push_back(std::move(at).value());
    } else if (c.at.empty()) {
      return at.ok() ? fail(Code::unsupported, "its results are unsure when it is written out")
                     : at.take_status();
    }
  }
  return c;
}

namespace {

std::vector<Turn> turns_of(const FusedCase& c) {
  std::vector<Turn> turns;
  for (const GraphCase& at : c.at) turns.push_back({&at, 0});
  turns.push_back({&c.at[0], 1});
  if (c.at.size() > 1) turns.push_back({&c.at[1], 1});
  turns.push_back({&c.at[0], 0});
  return turns;
}

size_t composites(const ir::Graph& g) {
  return static_cast<size_t>(
      std::ranges::count_if(g.nodes, [](const ir::Node& n) { return !n.op->primitive(); }));
}
int64_t recomposed(const ir::Graph& graph) {
  ir::Graph g = graph;
  raise_if(compiler::recompose(g, compiler::all_recompositions()));
  const size_t before = composites(graph), after = composites(g);
  return after > before ? static_cast<int64_t>(after - before) : 0;
}

// The pipeline, with the patterns that refer to nodes by number in an order that the seed draws.
std::vector<compiler::Pass> passes_for(uint64_t seed) {
  std::vector<compiler::Pass> passes(compiler::pipeline().begin(), compiler::pipeline().end());
  const auto first = std::ranges::find(passes, std::string_view("fuse_elementwise"), &compiler::Pass::name);
  Random random(seed ^ 0x6f72646572);
  for (auto n = passes.end() - first; n > 1; --n)
    std::swap(first[n - 1], first[static_cast<std::ptrdiff_t>(random.bits() % static_cast<uint64_t>(n))]);
  return passes;
}

// The first backend that is wrong, and how.
std::string judged(FusedCase& c, bool fuse, std::span<const std::string> backends,
                   const compiler::Pass& planted, std::string& refusal) {
  constexpr uint64_t kSeeds = 8;  // eight runs underrate the noise of one element in a million or so
  auto passes = passes_for(c.seed);
  if (planted.run && fuse) passes.insert(passes.begin(), planted);
  const auto program = compile_with(c.graph, c.at[0], fuse, passes);
  if (!program.ok()) return "compiler: " + program.status().text();
  for (const auto& backend : backends) {
    auto v = run_turns(turns_of(c), program.value(), backend);
    if (v.kind == GraphVerdict::Kind::failed) {
      for (GraphCase& at : c.at) raise_if(measure_noise(at, kSeeds));
      v = run_turns(turns_of(c), program.value(), backend);
    }
    if (v.kind == GraphVerdict::Kind::refused && refusal.empty()) refusal = v.reason;
    if (v.kind == GraphVerdict::Kind::failed) return fmt::format("{}: {}", backend, v.reason);
  }
  return "";
}

}  // namespace

FusedRun fused_graphs(std::span<const std::string> backends, const FusedGraphs& what) {
  constexpr size_t kShown = 3;
  FusedRun run;
  for (int64_t i = 0; i < what.count; ++i) {
    const uint64_t seed = what.first_seed + static_cast<uint64_t>(i);
    auto made = fused_case(seed);
    if (what.progress) what.progress(i + 1, what.count);
    if (!made.ok()) {
      ++run.refused;
      if (run.refusal.empty()) run.refusal = fmt::format("seed {}: {}", seed, made.status().text());
      continue;
    }
    FusedCase& c = made.value();
    ++run.run;
    run.written_out += static_cast<int64_t>(c.written_out), run.recomposed += recomposed(c.graph);
    run.with_symbol += c.has_symbol;
    if (c.has_symbol) run.sizes += static_cast<int64_t>(c.at.size());
    for (const bool fuse : {false, true})
      if (const auto wrong = judged(c, fuse, backends, what.planted, run.refusal); !wrong.empty()) {
        ++run.failed;
        if (run.failures.size() < kShown)
          run.failures.push_back(fmt::format("seed {}, {}: {}\n{}", seed, fuse ? "fused" : "not fused", wrong,
                                             ir::print(c.graph)));
        break;
      }
  }
  return run;
}

}  // namespace weft::conformance

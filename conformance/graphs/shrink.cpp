#include "conformance/graphs/shrink.h"

#include <algorithm>
#include <optional>

namespace weft::conformance {
namespace {

/// The kept part of a graph.
struct Kept {
  std::vector<bool> nodes, outputs;
  int64_t size = 0, becomes = 0;  // every dimension of `size` becomes `becomes`
};
Kept all_of(const GraphCase& c) {
  return {std::vector<bool>(c.graph.nodes.size(), true), std::vector<bool>(c.graph.outputs.size(), true)};
}

// The corner of an array that fits the new shape.
Array cut(const Array& a, const Dims& shape) {
  if (a.shape == shape) return a;
  Array out{a.dtype, shape, {}};
  const int64_t n = count(shape);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      at += rest % shape[d] * stride;
      rest /= shape[d], stride *= a.shape[d];
    }
    out.v.push_back(a.v[static_cast<size_t>(at)]);
  }
  return out;
}

class Rebuild {
 public:
  Rebuild(const GraphCase& c, const Kept& kept)
      : c_(c), kept_(kept), to_(c.graph.types.size(), -1), updated_(c.graph.types.size(), false) {
    made_.seed = c.seed, made_.fuse = c.fuse;
  }

  /// None if the parts do not fit together, or nothing is left to judge.
  std::optional<GraphCase> run() {
    const auto& g = c_.graph;
    for (size_t i = 0; i < g.nodes.size(); ++i)
      if (kept_.nodes[i])
        for (const auto& [output, input] : updates_of(*g.nodes[i].op))
          updated_[static_cast<size_t>(g.nodes[i].inputs[input])] = true;
    for (size_t i = 0; i < g.nodes.size(); ++i)
      if (kept_.nodes[i] && !node(g.nodes[i])) return std::nullopt;
    for (size_t k = 0; k < g.outputs.size(); ++k) {
      const int32_t id = to_[static_cast<size_t>(g.outputs[k].value)];
      if (kept_.outputs[k] && id >= 0 && !is_start(id))
        made_.graph.output(g.outputs[k].name, made_.graph.value(id));
    }
    if (made_.graph.outputs.empty() && made_.graph.states.empty()) return std::nullopt;
    return std::move(made_);
  }

 private:
  bool is_start(int32_t id) const { return start_[static_cast<size_t>(id)]; }
  Dims resized(Dims shape) const {
    for (int64_t& d : shape)
      if (kept_.size && d == kept_.size) d = kept_.becomes;
    return shape;
  }

  // A value whose node is not kept: a state if a kept node overwrites it, else an input.
  void begin(int32_t id) {
    const auto at = static_cast<size_t>(id);
    std::array<Array, kDataSets> data;
    for (size_t set = 0; set < kDataSets; ++set) {
      data[set] = cut(c_.values[set][at].value, resized(c_.values[set][at].value.shape));
      for (Real& v : data[set].v) v = round_to(data[set].dtype, v);
    }
    auto& g = made_.graph;
    ir::Value v;
    if (updated_[at]) {
      v = g.state(fmt::format("s{}", g.states.size()), type_of(data[0]));
    } else {
      v = g.input(fmt::format("x{}", g.inputs.size()), type_of(data[0]));
    }
    state_of_.push_back(updated_[at] ? static_cast<int32_t>(g.states.size()) - 1 : -1);
    start_.push_back(true);
    for (size_t set = 0; set < kDataSets; ++set) made_.values[set].push_back(exactly(std::move(data[set])));
    to_[at] = v.id();
  }

  bool node(const ir::Node& n) {
    auto& g = made_.graph;
    std::vector<const TensorType*> types;
    std::vector<TensorType> held;
    held.reserve(n.inputs.size());
    ir::ValueList in;
    OperandSets operands;
    for (const int32_t id : n.inputs) {
      if (id >= 0 && to_[static_cast<size_t>(id)] < 0) begin(id);
      const int32_t now = id < 0 ? -1 : to_[static_cast<size_t>(id)];
      in.push_back(now < 0 ? ir::Value() : g.value(now));
      if (now >= 0) held.push_back(in.back().type());
      types.push_back(now < 0 ? nullptr : &held.back());
    }
    for (size_t set = 0; set < kDataSets; ++set)
      for (const auto v : in)
        operands[set].push_back(v ? &made_.values[set][static_cast<size_t>(v.id())] : nullptr);
    auto attrs = n.attrs;
    for (auto& a : attrs)
      if (auto* dims = std::get_if<Shape>(&a); dims && kept_.size)
        for (Dim& d : *dims)
          if (d == Dim(kept_.size)) d = Dim(kept_.becomes);
    if (!n.op->infer(ir::Types(types), attrs).ok()) return false;
    auto bounded = bound_call(*n.op, attrs, operands);
    if (!bounded.ok()) return false;
    const auto out = g.call(*n.op, in, std::move(attrs));
    for (size_t k = 0; k < out.size(); ++k) {
      for (size_t set = 0; set < kDataSets; ++set)
        made_.values[set].push_back(std::move(bounded.value()[set][k]));
      to_[static_cast<size_t>(n.outputs[k])] = out[k].id();
      state_of_.push_back(-1), start_.push_back(false);
    }
    for (const auto& [output, input] : updates_of(*n.op)) {
      const int32_t state = state_of_[static_cast<size_t>(in[input].id())];
      state_of_[static_cast<size_t>(out[output].id())] = state;
      if (state >= 0) g.states[static_cast<size_t>(state)].after = out[output].id();
    }
    return true;
  }

  const GraphCase& c_;
  const Kept& kept_;
  GraphCase made_;
  std::vector<int32_t> to_;        // old value -> new, or -1
  std::vector<bool> updated_;      // old values that a kept node overwrites
  std::vector<int32_t> state_of_;  // new value -> the state whose buffer it has
  std::vector<bool> start_;        // new values that no node makes
};

// A valid index may be out of range after shrinking.
bool has_indices(const GraphCase& c) {
  for (const auto& n : c.graph.nodes) {
    if (ir::has(n.op->traits, ir::Trait::elementwise)) continue;
    for (const int32_t id : n.inputs)
      if (id >= 0 && !is_float(c.graph.types[static_cast<size_t>(id)].dtype)) return true;
  }
  return false;
}

// Nodes and outputs, then elements: each step makes the graph smaller, so it ends.
std::pair<size_t, int64_t> weight(const GraphCase& c) {
  int64_t elements = 0;
  for (const auto& t : c.graph.types) {
    int64_t n = 1;
    for (const Dim d : t.shape) n *= d.value();
    elements += n;
  }
  return {c.graph.nodes.size() + c.graph.outputs.size(), elements};
}

class Shrinker {
 public:
  Shrinker(GraphCase c, const std::function<bool(const GraphCase&)>& fails)
      : c_(std::move(c)), fails_(fails) {}

  GraphCase run() {
    bool smaller = true;
    while (smaller) {
      smaller = without_some(&Kept::nodes);
      smaller |= without_some(&Kept::outputs);
      smaller |= smaller_sizes();
    }
    return std::move(c_);
  }

 private:
  bool take(const Kept& kept) {
    auto candidate = Rebuild(c_, kept).run();
    if (!candidate || !(weight(*candidate) < weight(c_)) || !fails_(*candidate)) return false;
    c_ = std::move(*candidate);
    return true;
  }
  // Tries to leave out runs, long ones first.
  bool without_some(std::vector<bool> Kept::* list) {
    bool any = false;
    size_t length = (all_of(c_).*list).size();
    for (; length > 0; length /= 2)
      for (size_t at = 0;;) {
        Kept kept = all_of(c_);
        auto& flags = kept.*list;
        if (at >= flags.size() || flags.size() < 2) break;
        const size_t end = std::min(flags.size(), at + length);
        std::fill(flags.begin() + static_cast<ptrdiff_t>(at), flags.begin() + static_cast<ptrdiff_t>(end),
                  false);
        if (take(kept)) {
          any = true;
        } else {
          at = end;
        }
      }
    return any;
  }
  bool smaller_sizes() {
    if (has_indices(c_)) return false;
    std::vector<int64_t> sizes;
    for (const auto& t : c_.graph.types)
      for (const Dim d : t.shape)
        if (d.value() > 1 && std::find(sizes.begin(), sizes.end(), d.value()) == sizes.end())
          sizes.push_back(d.value());
    bool any = false;
    for (const int64_t size : sizes)
      for (const int64_t to : {int64_t{1}, int64_t{2}, size / 2}) {
        Kept kept = all_of(c_);
        kept.size = size, kept.becomes = to;
        if (to < size && take(kept)) {
          any = true;
          break;
        }
      }
    return any;
  }

  GraphCase c_;
  const std::function<bool(const GraphCase&)>& fails_;
};

}  // namespace

GraphCase shrunk(GraphCase c, const std::function<bool(const GraphCase&)>& fails) {
  return Shrinker(std::move(c), fails).run();
}

std::string text(const GraphCase& c) {
  constexpr size_t kShown = 24;
  std::string s = fmt::format("# seed {}{}\n", c.seed, c.fuse ? "" : ", not fused");
  const auto numbers = [&](const std::string& name, int32_t id) {
    const auto& v = c.values[0][static_cast<size_t>(id)].value.v;
    s += fmt::format("# {} =", name);
    for (size_t i = 0; i < std::min(kShown, v.size()); ++i) s += fmt::format(" {:.9g}", double(v[i]));
    s += v.size() > kShown ? " ...\n" : "\n";
  };
  for (const auto& i : c.graph.inputs) numbers(i.name, i.value);
  for (const auto& w : c.graph.weights) numbers(w.name, w.value);
  for (const auto& st : c.graph.states) numbers(st.name, st.before);
  return s + ir::print(c.graph);
}

}  // namespace weft::conformance

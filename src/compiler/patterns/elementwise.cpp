#include <algorithm>
#include <set>

#include "compiler/pattern.h"
#include "ir/lower.h"

// Chains of elementwise nodes over one shape become one region: a device that compiles text runs it as one
// loop, others run the body. A composite op such as relu joins its neighbours as its decomposition; alone it
// stays a call of its op, for which a device may have a kernel.
namespace weft::compiler {
namespace {

constexpr size_t kWindow = 48;      // the length of code over which a chain is followed
constexpr size_t kMostInputs = 24;  // of a region: every OpenCL device allows this many buffers with offsets

bool is_constant(const ir::Node& n) { return std::string_view(n.op->name) == "full"; }

class Fuser {
 public:
  explicit Fuser(const Module& m)
      : g_(m.graph),
        fusible_(g_.nodes.size(), false),
        taken_(g_.nodes.size(), false),
        updated_at_(g_.types.size(), SIZE_MAX),
        maker_(g_.types.size(), SIZE_MAX),
        readers_(g_.types.size()),
        kept_(g_.types.size(), false) {
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      fusible_[i] = is_elementwise(g_, g_.nodes[i]) && is_pure(g_.nodes[i]);
      for (const auto& u : g_.nodes[i].op->updates)
        if (u.input >= 0)
          updated_at_[static_cast<size_t>(g_.nodes[i].inputs[static_cast<size_t>(u.input)])] = i;
      for (const int32_t id : g_.nodes[i].inputs)
        if (id >= 0) readers_[static_cast<size_t>(id)].push_back(i);
      for (const int32_t id : g_.nodes[i].outputs) maker_[static_cast<size_t>(id)] = i;
    }
    for (const auto& o : g_.outputs) kept_[static_cast<size_t>(o.value)] = true;
    for (const auto& s : g_.states)
      if (s.after >= 0) kept_[static_cast<size_t>(s.after)] = true;
    for (const Fusion& f : m.fusions)
      for (const size_t n : f.nodes) taken_[n] = true;
  }

  std::vector<Group> run() {
    std::vector<Group> all;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (taken_[i] || !fusible_[i]) continue;
      auto nodes = grow(i);
      if (nodes.size() < 2) continue;
      with_constants(nodes);
      for (const size_t n : nodes) taken_[n] = true;
      all.push_back({"elementwise", std::move(nodes)});
    }
    return all;
  }

 private:
  const ir::Node& node(size_t i) const { return g_.nodes[i]; }
  const TensorType& out_type(size_t i) const { return g_.types[static_cast<size_t>(node(i).outputs[0])]; }
  // Follows the chain from node `first`. A node joins if it reads the chain, has its shape, and running the
  // whole chain at the place of its last node changes nothing for the nodes between. With a node come those
  // that only the chain reads.
  std::vector<size_t> grow(size_t first) const {
    std::vector<size_t> chain = {first};
    pull(chain, first, first);
    std::set<int32_t> made = outputs_of(chain);
    const auto reads_chain = [&](size_t i) {
      return std::any_of(node(i).inputs.begin(), node(i).inputs.end(),
                         [&](int32_t id) { return made.count(id) != 0; });
    };
    for (size_t i = first + 1; i < std::min(g_.nodes.size(), first + kWindow); ++i) {
      if (!reads_chain(i)) continue;
      // A reader that can't join needs the chain's result, so the chain ends here.
      if (taken_[i] || !fusible_[i] || !(out_type(i).shape == out_type(first).shape)) break;
      chain.push_back(i);
      if (!movable_to(chain, i) || inputs_of(chain).size() > kMostInputs) {
        chain.pop_back();
        break;
      }
      pull(chain, i, i);
      made = outputs_of(chain);
    }
    return chain;
  }

  // Adds the makers of node i's operands that may join the chain, which ends at `last`, and theirs.
  void pull(std::vector<size_t>& chain, size_t i, size_t last) const {
    for (const int32_t id : node(i).inputs) {
      const size_t m = id < 0 ? SIZE_MAX : maker_[static_cast<size_t>(id)];
      if (m == SIZE_MAX || !may_be_pulled(chain, m, last)) continue;
      chain.push_back(m);
      if (movable_to(chain, last) && inputs_of(chain).size() <= kMostInputs)
        pull(chain, m, last);
      else
        chain.pop_back();
    }
  }
  bool may_be_pulled(const std::vector<size_t>& chain, size_t m, size_t last) const {
    const auto in_chain = [&](size_t n) { return std::ranges::find(chain, n) != chain.end(); };
    if (taken_[m] || !fusible_[m] || in_chain(m) || !(out_type(m).shape == out_type(last).shape))
      return false;
    const auto only_here = [&](int32_t id) {
      return !kept_[static_cast<size_t>(id)] &&
             std::ranges::all_of(readers_[static_cast<size_t>(id)], in_chain);
    };
    return std::ranges::all_of(node(m).outputs, only_here) && (last - m < kWindow || operands_are_less(m));
  }
  // Is less memory in use if the operands of node m are kept and not its result?
  bool operands_are_less(size_t m) const {
    const auto size = [&](const TensorType& t) { return t.shape.empty() ? 0 : byte_size(t.dtype); };
    uint64_t operands = 0;
    for (const int32_t id : node(m).inputs)
      if (id >= 0) operands += size(g_.types[static_cast<size_t>(id)]);
    return operands <= size(out_type(m));
  }

  std::set<int32_t> outputs_of(const std::vector<size_t>& chain) const {
    std::set<int32_t> out;
    for (const size_t n : chain) out.insert(node(n).outputs.begin(), node(n).outputs.end());
    return out;
  }
  std::set<int32_t> inputs_of(const std::vector<size_t>& chain) const {
    std::set<int32_t> in;
    for (const size_t n : chain)
      for (const int32_t id : node(n).inputs) in.insert(id);
    for (const size_t n : chain)
      for (const int32_t id : node(n).outputs) in.erase(id);
    return in;
  }
  // No operand of the chain is overwritten before position `last`.
  bool movable_to(const std::vector<size_t>& chain, size_t last) const {
    const auto in = inputs_of(chain);
    return std::all_of(in.begin(), in.end(),
                       [&](int32_t id) { return id < 0 || updated_at_[static_cast<size_t>(id)] > last; });
  }
  // Constants that only the chain reads move into it.
  void with_constants(std::vector<size_t>& chain) const {
    const std::set<size_t> members(chain.begin(), chain.end());
    const auto inside = [&](size_t n) { return members.count(n) != 0; };
    for (const int32_t id : inputs_of(chain)) {
      const size_t maker = id < 0 ? SIZE_MAX : maker_[static_cast<size_t>(id)];
      if (maker == SIZE_MAX || taken_[maker] || kept_[static_cast<size_t>(id)]) continue;
      if (is_constant(node(maker)) && out_type(maker).shape.empty() &&
          std::ranges::all_of(readers_[static_cast<size_t>(id)], inside))
        chain.push_back(maker);
    }
    std::sort(chain.begin(), chain.end());
  }

  const ir::Graph& g_;
  std::vector<bool> fusible_, taken_;
  std::vector<size_t> updated_at_, maker_;    // by value: the node that overwrites it, that makes it
  std::vector<std::vector<size_t>> readers_;  // by value: nodes
  std::vector<bool> kept_;                    // by value: an output, or the end of a state
};

}  // namespace

// A composite is elementwise where every step of its decomposition is, or is a constant.
bool is_elementwise(const ir::Graph& graph, const ir::Node& n) {
  if (!ir::has(n.op->traits, ir::Trait::elementwise) || n.op->primitive())
    return ir::has(n.op->traits, ir::Trait::elementwise);
  std::vector<const TensorType*> types;
  for (const int32_t id : n.inputs) types.push_back(id < 0 ? nullptr : &graph.types[static_cast<size_t>(id)]);
  const auto body = ir::lower_to_primitives(*n.op, types, n.attrs);
  if (!body.ok()) return false;
  const auto& steps = body.value().nodes;
  return std::all_of(steps.begin(), steps.end(), [](const ir::Node& step) {
    return ir::has(step.op->traits, ir::Trait::elementwise) || is_constant(step);
  });
}

Status fuse_elementwise(Module& m, const Options& options) {
  static constexpr Pattern pattern = {"fuse_elementwise", Claim::nodes,
                                      [](const Module& now) { return Fuser(now).run(); }};
  return apply(pattern, m, options);
}

}  // namespace weft::compiler

#include "compiler/recompose.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::compiler {
namespace {

class Recomposer {
 public:
  Recomposer(ir::Graph& g, std::span<const Recomposition* const> all)
      : g_(g),
        matcher_(g),
        readers_(g.types.size(), 0),
        kept_(g.types.size(), false),
        overwritten_at_(g.types.size(), SIZE_MAX) {
    for (const Recomposition* r : all) all_.push_back({r, r->terms()});
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      count(g.nodes[i], 1);
      for (const auto& u : g.nodes[i].op->updates)
        if (u.output >= 0) overwritten_at_[at(g.nodes[i].inputs[static_cast<size_t>(u.input)])] = i;
    }
    for (const auto& o : g.outputs) kept_[at(o.value)] = true;
    for (const auto& s : g.states) kept_[at(s.after)] = true;
  }

  Status run() {
    std::vector<ir::Node> old = std::exchange(g_.nodes, {});
    const std::string scope = g_.scope;
    const uint32_t run = g_.run;
    for (now_ = 0; now_ < old.size(); ++now_) {
      for (int32_t& id : old[now_].inputs) id = renamed(id);
      g_.nodes.push_back(std::move(old[now_]));
      note_last_node();
      while (g_.status().ok() && replace_last()) {
      }
    }
    g_.scope = scope, g_.run = run, g_.from.clear();
    for (auto& o : g_.outputs) o.value = renamed(o.value);
    for (auto& s : g_.states) s.after = renamed(s.after);
    size_t place = 0;
    std::erase_if(g_.nodes, [&](const ir::Node&) { return dead_[place++]; });
    return Status(g_.status());
  }

 private:
  struct Known {
    const Recomposition* what;
    std::vector<Term> terms;
  };
  struct Candidate {
    const Recomposition* what;
    Match match;
    std::set<size_t> inside;
  };

  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  int32_t renamed(int32_t id) const {
    for (auto to = renamed_.find(id); to != renamed_.end(); to = renamed_.find(id)) id = to->second;
    return id;
  }
  void count(const ir::Node& node, int by) {
    for (const int32_t id : node.inputs)
      if (id >= 0) readers_[at(id)] += by;
  }
  void note_last_node() {
    matcher_.add_last_node();
    dead_.push_back(false);
    readers_.resize(g_.types.size(), 0), kept_.resize(g_.types.size(), false);
    overwritten_at_.resize(g_.types.size(), SIZE_MAX);
  }

  // Replaces the first result of the last node, if something fits it.
  bool replace_last() {
    const ir::Node& last = g_.nodes.back();
    if (last.outputs.empty()) return false;
    const int32_t root = last.outputs[0];
    auto candidates = candidates_for(root);
    std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
      return a.inside.size() != b.inside.size() ? a.inside.size() > b.inside.size()
                                                : std::string_view(a.what->name) < b.what->name;
    });
    return std::ranges::any_of(candidates, [&](const Candidate& c) { return replaced(root, c); });
  }

  std::vector<Candidate> candidates_for(int32_t root) const {
    std::vector<Candidate> all;
    for (const Known& known : all_)
      for (const Term& term : known.terms)
        for (Match& m : matcher_.matches(term, root)) {
          std::set<size_t> inside(m.nodes.begin(), m.nodes.end());
          if (may_be_one(inside, root)) all.push_back({known.what, std::move(m), std::move(inside)});
        }
    return all;
  }

  // Nothing but its operands and the root is seen from outside, and it may run where the root does.
  bool may_be_one(const std::set<size_t>& inside, int32_t root) const {
    std::map<int32_t, int> reads;
    for (const size_t n : inside)
      for (const int32_t id : g_.nodes[n].inputs)
        if (id >= 0) ++reads[id];
    for (const auto& [id, n] : reads)
      if (overwritten_at_[at(id)] <= now_) return false;
    for (const size_t n : inside) {
      if (!is_pure(g_.nodes[n]) || g_.nodes[n].run != g_.nodes.back().run) return false;
      for (const int32_t id : g_.nodes[n].outputs)
        if (id != root && (kept_[at(id)] || readers_[at(id)] != reads[id])) return false;
    }
    return true;
  }

  bool replaced(int32_t root, const Candidate& c) {
    const size_t before = g_.nodes.size();
    const std::string where = g_.nodes.back().where;
    g_.run = g_.nodes.back().run, g_.from = g_.nodes.back().from;
    g_.scope = where.substr(0, std::min(where.rfind('.'), where.size()));
    const ir::Value made = c.what->make({g_, matcher_, c.match, root});
    if (!made) {
      g_.nodes.erase(g_.nodes.begin() + static_cast<ptrdiff_t>(before), g_.nodes.end());
      return false;
    }
    if (!(made.type() == matcher_.type(root)))
      g_.fail(fail(Code::internal, "{} makes {} of {}", c.what->name, text(made.type()),
                   text(matcher_.type(root))));
    std::vector<ir::Node> added(std::make_move_iterator(g_.nodes.begin() + static_cast<ptrdiff_t>(before)),
                                std::make_move_iterator(g_.nodes.end()));
    g_.nodes.resize(before);
    for (ir::Node& node : added) {
      g_.nodes.push_back(std::move(node));
      note_last_node();
      count(g_.nodes.back(), 1);
    }
    for (const size_t n : c.inside) dead_[n] = true, count(g_.nodes[n], -1);
    for (const size_t n : c.inside) remove_makers(g_.nodes[n]);
    renamed_[root] = made.id();
    readers_[at(made.id())] += readers_[at(root)];
    kept_[at(made.id())] = kept_[at(made.id())] || kept_[at(root)];
    overwritten_at_[at(made.id())] = overwritten_at_[at(root)];
    return true;
  }

  // Nodes that nothing reads any more are no readers, either.
  void remove_makers(const ir::Node& reader) {
    for (const int32_t id : reader.inputs) {
      const ir::Node* node = matcher_.maker(id);
      if (!node || dead_[static_cast<size_t>(matcher_.place(id))] || !is_pure(*node)) continue;
      if (std::ranges::any_of(node->outputs, [&](int32_t y) { return readers_[at(y)] > 0 || kept_[at(y)]; }))
        continue;
      dead_[static_cast<size_t>(matcher_.place(id))] = true;
      count(*node, -1);
      remove_makers(*node);
    }
  }

  ir::Graph& g_;
  Matcher matcher_;
  std::vector<Known> all_;
  std::vector<int> readers_;            // by value: how many operands it is, of nodes to come, too
  std::vector<bool> kept_;              // by value: an output, or the end of a state
  std::vector<size_t> overwritten_at_;  // by value: the node that does so
  std::vector<bool> dead_;              // by node
  std::map<int32_t, int32_t> renamed_;  // the values that were replaced
  size_t now_ = 0;                      // the node of the old graph that was added last
};

}  // namespace

ir::Value reshaped(ir::Graph& g, ir::Value v, const Shape& shape) {
  return v.shape() == shape ? v : g.reshape(v, shape);
}

bool is_row(const TensorType& t, const Shape& row) {
  if (t.shape.size() < row.size()) return false;
  const auto front = t.shape.end() - static_cast<ptrdiff_t>(row.size());
  return std::all_of(t.shape.begin(), front, [](Dim d) { return d == Dim(1); }) &&
         std::equal(front, t.shape.end(), row.begin());
}

bool gives(const char* op, std::span<const ir::Value> operands, std::initializer_list<Attr> attrs,
           const TensorType& wanted) {
  const ir::OpDef& def = *ir::find_op(op);
  std::vector<const TensorType*> types;
  for (const ir::Value v : operands) types.push_back(v ? &v.type() : nullptr);
  const auto ordered = ir::order_attrs(def, attrs);
  if (!ordered.ok()) return false;
  const auto result = def.infer(ir::Types(types), ordered.value());
  return result.ok() && result.value()[0] == wanted;
}

Status recompose(ir::Graph& g, std::span<const Recomposition* const> all) { return Recomposer(g, all).run(); }

// Equal nodes are one before, so that the same value is seen to be the same; dead ones would count as
// readers. What is made for each layer anew, such as a slice of a table, is one again behind.
Status recompose_ops(Module& m, const Options& options) {
  if (!options.fuse) return {};
  WEFT_CHECK(remove_dead_nodes(m, options));
  WEFT_CHECK(recompose(m.graph, all_recompositions()));
  return merge_equal_nodes(m, options);
}

}  // namespace weft::compiler

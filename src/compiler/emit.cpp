#include <algorithm>
#include <map>
#include <set>

#include "base/identical.h"
#include "compiler/module.h"
#include "ir/lower.h"

namespace weft::compiler {
namespace {

using program::CompiledProgram;
using program::KernelCall;
using program::Region;

void set_attrs(KernelCall& call, const ir::OpDef& op, ir::AttrView attrs) {
  const auto defaults = op.defaults();
  for (size_t i = 0; i < attrs.size(); ++i) {
    call.attrs.push_back({op.attrs[i].name, attrs[i]});
    if (identical(attrs[i], defaults[i])) call.defaults.push_back(op.attrs[i].name);
  }
  std::sort(call.attrs.begin(), call.attrs.end(),
            [](const Attr& a, const Attr& b) { return a.name < b.name; });
  std::sort(call.defaults.begin(), call.defaults.end());
}

KernelCall call_of(const ir::Node& node) {
  KernelCall call;
  call.op = node.op->name, call.version = node.op->version, call.where = node.where, call.from = node.from;
  set_attrs(call, *node.op, node.attrs);
  call.inputs = node.inputs, call.outputs = node.outputs;
  for (const auto& u : node.op->updates)
    if (u.output >= 0)
      call.updates.push_back({static_cast<uint32_t>(u.output), static_cast<uint32_t>(u.input)});
  return call;
}

Region region_of(const ir::Graph& body, std::string pattern) {
  Region r;
  r.pattern = std::move(pattern), r.n_inputs = static_cast<uint32_t>(body.inputs.size());
  for (const auto& t : body.types) r.values.push_back({t, 0});
  for (const auto& n : body.nodes) {
    r.calls.push_back(call_of(n));
    r.calls.back().where.clear(), r.calls.back().from.clear();  // calls from everywhere share a body
  }
  for (const auto& o : body.outputs) r.outputs.push_back(o.value);
  return r;
}

class Emitter {
 public:
  Emitter(const Module& m, const WeightSource& weights, const Options& options)
      : m_(m), g_(m.graph), weights_(weights) {
    p_.name = options.name;
    p_.origin = {{"compiler", "weft"}};
  }

  Result<CompiledProgram> run() {
    for (const auto& t : g_.types) p_.values.push_back({t, 0});
    collect_all_symbols();
    for (const auto& i : g_.inputs) p_.inputs.push_back({i.name, i.value});
    for (const auto& o : g_.outputs) p_.outputs.push_back({o.name, o.value});
    for (const auto& w : g_.weights) {
      WEFT_TRY(const int32_t blob, add_blob(w.name));
      p_.weights.push_back({w.name, w.value, blob});
    }
    for (const auto& s : g_.states) {
      WEFT_TRY(const int32_t blob, add_blob(s.name));
      p_.states.push_back({s.name, s.before, s.after, blob});
    }
    WEFT_CHECK(emit_calls());
    drop_unused_values();
    return std::move(p_);
  }

 private:
  void collect_all_symbols() {
    for (const auto& t : g_.types)
      for (const Dim d : t.shape) collect_symbols(d, p_.symbols);
    for (const auto& n : g_.nodes)
      for (const auto& a : n.attrs)
        if (const auto* dims = std::get_if<Shape>(&a))
          for (const Dim d : *dims) collect_symbols(d, p_.symbols);
    std::sort(p_.symbols.begin(), p_.symbols.end(),
              [](const Symbol& a, const Symbol& b) { return a.name < b.name; });
  }

  Result<int32_t> add_blob(const std::string& name) {
    if (!weights_) return fail(Code::unavailable, "no source for the value of {}", name);
    WEFT_TRY(auto blob, weights_(name));
    p_.blobs.push_back(std::move(blob));
    return static_cast<int32_t>(p_.blobs.size()) - 1;
  }

  Status emit_calls() {
    std::map<size_t, const Fusion*> ends;
    std::set<size_t> inside;
    for (const auto& f : m_.fusions) {
      ends[f.nodes.back()] = &f;
      inside.insert(f.nodes.begin(), f.nodes.end());
    }
    std::map<size_t, const Group*> groups;  // by place
    for (const auto& group : m_.groups)
      for (const size_t place : group.places) groups[place] = &group;
    std::map<const Group*, std::vector<KernelCall>> waiting;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const auto fusion = ends.find(i);
      if (fusion == ends.end() && inside.count(i)) continue;
      WEFT_TRY(auto call, fusion != ends.end() ? fusion_call(*fusion->second) : node_call(g_.nodes[i]));
      const auto group = groups.find(i);
      if (group == groups.end()) {
        p_.calls.push_back(std::move(call));
        continue;
      }
      auto& calls = waiting[group->second];
      calls.push_back(std::move(call));
      if (calls.size() == group->second->places.size())
        p_.calls.push_back(group_call(*group->second, std::move(calls)));
    }
    return {};
  }

  // The calls as the body of one call; values that nothing else reads stay inside.
  KernelCall group_call(const Group& group, std::vector<KernelCall> calls) {
    KernelCall outer;
    outer.op = group.name, outer.where = calls.front().where;
    outer.from = lines_of(nodes_of(group));
    if (group.has_attrs) outer.attrs = calls.back().attrs, outer.defaults = calls.back().defaults;
    Region body;
    body.pattern = group.name;
    std::map<int32_t, int32_t> local;
    const auto number = [&](int32_t id) {
      local[id] = static_cast<int32_t>(body.values.size());
      body.values.push_back(p_.values[static_cast<size_t>(id)]);
    };
    std::set<int32_t> made;
    for (const auto& call : calls) made.insert(call.outputs.begin(), call.outputs.end());
    for (const auto& call : calls)
      for (const int32_t id : call.inputs)
        if (id >= 0 && !made.count(id) && !local.count(id)) number(id), outer.inputs.push_back(id);
    body.n_inputs = static_cast<uint32_t>(outer.inputs.size());
    const std::set<size_t> members = nodes_of(group);
    for (auto& call : calls) {
      for (const int32_t id : call.outputs) {
        number(id);
        if (read_outside(id, members)) outer.outputs.push_back(id), body.outputs.push_back(local[id]);
      }
      for (auto* ids : {&call.inputs, &call.outputs})
        for (int32_t& id : *ids) id = id < 0 ? id : local[id];
      call.where.clear(), call.from.clear();  // calls from everywhere share a body
    }
    body.calls = std::move(calls);
    outer.region = add_region(std::move(body));
    return outer;
  }
  std::set<size_t> nodes_of(const Group& group) const {
    std::set<size_t> nodes(group.places.begin(), group.places.end());
    for (const auto& f : m_.fusions)
      if (nodes.count(f.nodes.back())) nodes.insert(f.nodes.begin(), f.nodes.end());
    return nodes;
  }

  Result<KernelCall> node_call(const ir::Node& node) {
    KernelCall call = call_of(node);
    if (!node.op->primitive()) {
      std::vector<const TensorType*> types;
      for (const int32_t id : node.inputs)
        types.push_back(id < 0 ? nullptr : &g_.types[static_cast<size_t>(id)]);
      WEFT_TRY(const auto body, ir::lower_to_primitives(*node.op, types, node.attrs));
      call.region = add_region(region_of(body, node.op->name));
    }
    return call;
  }

  // The body of a fusion: its nodes in a graph of their own, with composites decomposed.
  Result<KernelCall> fusion_call(const Fusion& f) {
    ir::Graph body;
    std::map<int32_t, ir::Value> local;
    KernelCall call;
    call.op = "region", call.where = g_.nodes[f.nodes.back()].where;
    const std::set<size_t> members(f.nodes.begin(), f.nodes.end());
    call.from = lines_of(members);
    std::set<int32_t> made;
    for (const size_t n : f.nodes) made.insert(g_.nodes[n].outputs.begin(), g_.nodes[n].outputs.end());
    for (const size_t n : f.nodes)
      for (const int32_t id : g_.nodes[n].inputs) {
        if (id < 0 || made.count(id) || local.count(id)) continue;
        local[id] = body.input("", g_.types[static_cast<size_t>(id)]);
        call.inputs.push_back(id);
      }
    for (const size_t n : f.nodes) {
      const auto& node = g_.nodes[n];
      ir::ValueList in;
      for (const int32_t id : node.inputs) in.push_back(id < 0 ? ir::Value() : local[id]);
      const auto out = node.op->primitive() ? body.call(*node.op, in, node.attrs)
                                            : ir::inline_primitives(body, *node.op, in, node.attrs);
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const int32_t id = node.outputs[k];
        local[id] = out[k];
        if (read_outside(id, members)) call.outputs.push_back(id), body.output("", out[k]);
      }
    }
    WEFT_CHECK(Status(body.status()));
    call.region = add_region(region_of(body, f.pattern));
    return call;
  }

  // Where the nodes were called from: each line once, in their order, a few of many.
  std::string lines_of(const std::set<size_t>& nodes) const {
    constexpr size_t kMost = 4;
    std::vector<std::string_view> lines;
    for (const size_t n : nodes)
      if (const std::string& from = g_.nodes[n].from;
          !from.empty() && std::ranges::find(lines, from) == lines.end())
        lines.push_back(from);
    std::string all;
    for (size_t i = 0; i < std::min(lines.size(), kMost); ++i) all.append(i ? ", " : "").append(lines[i]);
    if (lines.size() > kMost) all += fmt::format(" and {} more", lines.size() - kMost);
    return all;
  }

  bool read_outside(int32_t id, const std::set<size_t>& members) const {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (!members.count(i) && std::count(g_.nodes[i].inputs.begin(), g_.nodes[i].inputs.end(), id))
        return true;
    for (const auto& o : g_.outputs)
      if (o.value == id) return true;
    for (const auto& s : g_.states)
      if (s.after == id) return true;
    return false;
  }

  // Once per signature: equal bodies are shared.
  int32_t add_region(Region r) {
    const auto at = std::find(p_.regions.begin(), p_.regions.end(), r);
    if (at != p_.regions.end()) return static_cast<int32_t>(at - p_.regions.begin());
    p_.regions.push_back(std::move(r));
    return static_cast<int32_t>(p_.regions.size()) - 1;
  }

  // Renumbers values without those internal to fusions and those of removed nodes.
  void drop_unused_values() {
    std::vector<int32_t> renumbered(p_.values.size(), -1);
    std::vector<program::TensorSpec> kept;
    const auto keep = [&](int32_t& id) {
      if (id < 0) return;
      auto& to = renumbered[static_cast<size_t>(id)];
      if (to < 0) to = static_cast<int32_t>(kept.size()), kept.push_back(p_.values[static_cast<size_t>(id)]);
      id = to;
    };
    for (auto& i : p_.inputs) keep(i.value);
    for (auto& s : p_.states) keep(s.before);
    for (auto& w : p_.weights) keep(w.value);
    for (auto& c : p_.calls) {
      for (auto& id : c.inputs) keep(id);
      for (auto& id : c.outputs) keep(id);
    }
    for (auto& s : p_.states) keep(s.after);
    for (auto& o : p_.outputs) keep(o.value);
    p_.values = std::move(kept);
  }

  const Module& m_;
  const ir::Graph& g_;
  const WeightSource& weights_;
  CompiledProgram p_;
};

}  // namespace

Result<CompiledProgram> emit(const Module& m, const WeightSource& weights, const Options& options) {
  return Emitter(m, weights, options).run();
}

}  // namespace weft::compiler

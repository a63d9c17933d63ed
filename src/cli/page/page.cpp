#include "cli/page/page.h"

#include <map>
#include <set>

#include "cli/show.h"
#include "graph_html.h"

namespace weft::cli {
namespace {

using program::CompiledProgram;
using program::KernelCall;
using program::TensorSpec;
using program::ValueId;

/// The steps of a plan by the node that they run.
class Plan {
 public:
  explicit Plan(const link::Schedule* schedule) : schedule_(schedule) {
    if (!schedule) return;
    for (const auto& step : schedule->steps) by_node_[step.where].insert(kernel_of(step));
  }
  static std::string kernel_of(const link::Step& step) {
    return step.prepared ? step.prepared->kernel.id : "copy";
  }
  std::set<std::string> kernels(const std::string& node) const {
    const auto at = by_node_.find(node);
    return at == by_node_.end() ? std::set<std::string>() : at->second;
  }

 private:
  const link::Schedule* schedule_;
  std::map<std::string, std::set<std::string>> by_node_;
};

std::string type_of(ValueId id, const std::vector<TensorSpec>& values) {
  return id < 0 ? "_" : fmt::format("%{}: {}", id, text(values[static_cast<size_t>(id)].type));
}

// One step of a body, as "%3: f32[4] = add(%0, %2)".
Json body_step(const KernelCall& call, const std::vector<TensorSpec>& values) {
  std::string results, operands;
  for (const ValueId id : call.outputs) results += (results.empty() ? "" : ", ") + type_of(id, values);
  for (const ValueId id : call.inputs)
    operands += (operands.empty() ? "" : ", ") + (id < 0 ? std::string("_") : fmt::format("%{}", id));
  return {{"op", call.op}, {"text", fmt::format("{} = {}({})", results, call.op, operands)}};
}

// The calls whose operands are all constants: they are run once, when a session opens.
std::vector<bool> constant_values(const CompiledProgram& p) {
  std::vector<bool> constant(p.values.size());
  for (const auto& w : p.weights) constant[static_cast<size_t>(w.value)] = true;
  for (const auto& c : p.calls) {
    const bool all = std::ranges::all_of(
        c.inputs, [&](ValueId id) { return id < 0 || constant[static_cast<size_t>(id)]; });
    for (const ValueId id : c.outputs)
      if (id >= 0) constant[static_cast<size_t>(id)] = all;
  }
  return constant;
}

Json calls_json(const CompiledProgram& p, const Plan& plan) {
  const auto constant = constant_values(p);
  Json all = Json::list();
  for (const auto& c : p.calls) {
    Json attrs = Json::object(), body = Json::list();
    for (const auto& a : c.attrs) attrs.set(a.name, text(a.value));
    std::string pattern;
    if (c.region >= 0) {
      const auto& region = p.regions[static_cast<size_t>(c.region)];
      for (const auto& step : region.calls) body.push_back(body_step(step, region.values));
      // A body that implements an op of its own name is no fusion.
      if (c.op == "region" || region.pattern != c.op)
        pattern = region.pattern.empty() ? "region" : region.pattern;
      if (std::ranges::any_of(region.calls, [](const KernelCall& s) { return s.region >= 0; }))
        pattern = c.op;
    }
    const bool once = std::ranges::any_of(
        c.outputs, [&](ValueId id) { return id >= 0 && constant[static_cast<size_t>(id)]; });
    const std::set<std::string> kernels = plan.kernels(c.where);
    all.push_back({{"op", c.op},
                   {"pattern", pattern},
                   {"where", c.where},
                   {"inputs", c.inputs},
                   {"outputs", c.outputs},
                   {"attrs", attrs},
                   {"body", body},
                   {"kernels", kernels},
                   {"once", once && kernels.empty()}});
  }
  return all;
}

// Where the values of the first device lie, from step to step.
Json plan_json(const CompiledProgram& p, const link::Schedule& s) {
  using Kind = link::BufferAllocation::Kind;
  std::map<int32_t, const link::Step*> writer;
  Json steps = Json::list(), slots = Json::list();
  for (const auto& step : s.steps) {
    for (const int32_t slot : step.outputs) writer[slot] = &step;
    steps.push_back({{"kernel", Plan::kernel_of(step)}, {"where", step.where}});
  }
  std::map<std::string, std::vector<ValueId>> made;
  for (const auto& c : p.calls) made[c.where].insert(made[c.where].end(), c.outputs.begin(), c.outputs.end());
  for (size_t i = 0; i < s.slots.size(); ++i) {
    const auto& slot = s.slots[i];
    if (slot.kind != Kind::arena || slot.device != 0 || slot.same_as >= 0) continue;
    const auto by = writer.find(static_cast<int32_t>(i));
    const std::string where = by == writer.end() ? "" : by->second->where;
    slots.push_back(
        {{"offset", slot.offset},
         {"bytes", slot.type.bytes()},
         {"first", slot.first_step},
         {"last", slot.last_step},
         {"value", i},
         {"values", made.contains(where) ? Json(made[where]) : Json::list()},
         {"type", seam::text(slot.type)},
         {"made",
          by == writer.end() ? "workspace" : fmt::format("{} of {}", Plan::kernel_of(*by->second), where)}});
  }
  return {{"backend", s.devices[0]->name()},
          {"arena", s.arenas[0].bytes},
          {"peak", s.arenas[0].live_peak},
          {"steps", steps},
          {"slots", slots}};
}

Json to_json(const PageOf& of) {
  const CompiledProgram& p = of.program;
  Json values = Json::list(), states = Json::list(), weights = Json::list();
  for (const auto& v : p.values) values.push_back({{"type", text(v.type)}});
  const auto ports = [&](const std::vector<program::Port>& list) {
    Json all = Json::list();
    for (const auto& port : list)
      all.push_back({{"name", port.name},
                     {"value", port.value},
                     {"type", text(p.values[static_cast<size_t>(port.value)].type)}});
    return all;
  };
  for (const auto& s : p.states)
    states.push_back({{"name", s.name},
                      {"before", s.before},
                      {"after", fmt::format("%{}", s.after)},
                      {"type", text(p.values[static_cast<size_t>(s.before)].type)}});
  uint64_t bytes = 0;
  for (const auto& w : p.weights) {
    weights.push_back({{"name", w.name}, {"value", w.value}});
    bytes += p.blobs[static_cast<size_t>(w.blob)].size;
  }
  return {{"name", p.name},
          {"sizes", of.sizes},
          {"values", values},
          {"inputs", ports(p.inputs)},
          {"outputs", ports(p.outputs)},
          {"states", states},
          {"weights", weights},
          {"weight_bytes", bytes},
          {"calls", calls_json(p, Plan(of.schedule))},
          {"no_plan", of.no_plan},
          {"plan", of.schedule ? plan_json(p, *of.schedule) : Json()}};
}

}  // namespace

std::string graph_page(const PageOf& of) {
  std::string data = line_of(to_json(of)), page(graph_html);
  for (size_t at = 0; (at = data.find('<', at)) != data.npos; at += 6)
    data.replace(at, 1, "\\u003c");  // a name can't end the script
  constexpr std::string_view kHole = "@DATA@";
  return page.replace(page.find(kHole), kHole.size(), data);
}

}  // namespace weft::cli

#include "base/log.h"
#include "link/execution_plan.h"
#include "link/resolve_types.h"

namespace weft::link {
namespace {

using Kind = BufferAllocation::Kind;
using program::CompiledProgram;

// A value of the program, or one inside an expanded body, and its slot on each device (-1: not there).
struct FlatValue {
  seam::ConcreteType type;
  std::vector<int32_t> slots;
  bool overwritten = false;  // by an update in place, now or later
};

std::string reasons(const std::vector<seam::Refusal>& refusals) {
  std::string s;
  for (const auto& r : refusals) s += fmt::format("{}{}: {}", s.empty() ? "" : "; ", r.kernel, r.reason);
  return s;
}

class Linker {
 public:
  Linker(const CompiledProgram& p, const Bindings& b, std::span<seam::Device* const> devices,
         const Policy& policy)
      : p_(p), bindings_(b), policy_(policy) {
    plan_.devices.assign(devices.begin(), devices.end());
  }

  Result<ExecutionPlan> run() {
    for (const auto& v : p_.values) {
      WEFT_TRY(auto type, concrete(v, bindings_));
      add_value(std::move(type));
    }
    regions_.resize(p_.regions.size());
    for (const auto& in : p_.inputs) plan_.inputs.push_back(slot_for(in.value, 0));
    for (size_t i = 0; i < p_.states.size(); ++i) pin(p_.states[i].before, Kind::state, i);
    for (size_t i = 0; i < p_.weights.size(); ++i) pin(p_.weights[i].value, Kind::weight, i);
    for (const auto& call : p_.calls)
      for (const auto& u : call.updates) value(call.inputs[u.input]).overwritten = true;
    for (const auto& call : p_.calls) {
      WEFT_TRY(auto desc, described(call));
      WEFT_CHECK(place(std::move(desc), {call.inputs.begin(), call.inputs.end()},
                       {call.outputs.begin(), call.outputs.end()}, call.where, {}));
    }
    for (const auto& out : p_.outputs) {
      WEFT_TRY(const int32_t slot, slot_on(out.value, 0));
      plan_.outputs.push_back(slot);
    }
    set_lifetimes();
    plan_.arenas = plan_memory(plan_.slots, plan_.devices);
    return std::move(plan_);
  }

 private:
  using Ids = std::vector<int32_t>;

  int32_t add_value(seam::ConcreteType type) {
    values_.push_back({std::move(type), Ids(plan_.devices.size(), -1)});
    return static_cast<int32_t>(values_.size()) - 1;
  }
  int32_t add_slot(BufferAllocation slot) {
    plan_.slots.push_back(std::move(slot));
    return static_cast<int32_t>(plan_.slots.size()) - 1;
  }
  FlatValue& value(int32_t id) { return values_[static_cast<size_t>(id)]; }

  // States and weights live on the first device; others get copies.
  void pin(int32_t id, Kind kind, size_t index) {
    value(id).slots[0] =
        add_slot({.kind = kind, .index = static_cast<int32_t>(index), .type = value(id).type});
  }
  int32_t slot_for(int32_t id, uint32_t device) {
    int32_t& slot = value(id).slots[device];
    if (slot < 0) slot = add_slot({.device = device, .type = value(id).type});
    return slot;
  }
  // Where a value that exists already can be read on `device`; copied there by a step of its own if need be.
  Result<int32_t> slot_on(int32_t id, uint32_t device) {
    if (value(id).slots[device] >= 0) return value(id).slots[device];
    for (const int32_t from : value(id).slots) {
      if (from < 0) continue;
      const int32_t to = slot_for(id, device);
      add_copy(from, to);
      return to;
    }
    return fail(Code::internal, "value %{} has no place yet", id);
  }
  void add_copy(int32_t from, int32_t to) {
    plan_.steps.push_back(
        {.inputs = {from}, .outputs = {to}, .device = plan_.slots[static_cast<size_t>(to)].device});
  }

  Result<seam::CallDesc> described(const program::KernelCall& call) {
    std::vector<seam::ConcreteType> types;
    for (const auto& v : values_) types.push_back(v.type);
    WEFT_TRY(auto desc, describe(call, types, bindings_));
    desc.determinism = policy_.determinism, desc.precision = policy_.precision;
    if (call.region < 0) return desc;
    auto& region = regions_[static_cast<size_t>(call.region)];
    if (!region) {
      WEFT_TRY(region, describe(p_.regions[static_cast<size_t>(call.region)], bindings_));
    }
    desc.region = region;
    return desc;
  }

  // The same elements under another shape need no step, as long as nobody writes over them.
  bool shares(const seam::CallDesc& desc, int32_t in, int32_t out) {
    if (desc.op != "reshape" || value(in).overwritten || value(out).overwritten) return false;
    const int32_t slot = value(in).slots[0];
    if (slot < 0 || std::ranges::any_of(value(out).slots, [](int32_t s) { return s >= 0; })) return false;
    BufferAllocation same = plan_.slots[static_cast<size_t>(slot)];
    same.type = value(out).type;
    if (same.same_as < 0) same.same_as = slot;
    value(out).slots[0] = add_slot(std::move(same));
    return true;
  }

  // `outer` says whose body this call is part of, and why that body had to be opened.
  Status place(seam::CallDesc desc, const Ids& in, const Ids& out, const std::string& where,
               const std::string& outer) {
    if (in.size() == 1 && shares(desc, in[0], out[0])) return {};
    const auto call = std::make_shared<const seam::OwnedCall>(std::move(desc));
    std::vector<seam::Refusal> refusals;
    const size_t reach = policy_.fallback == Fallback::forbid ? 1 : plan_.devices.size();
    for (uint32_t d = 0; d < reach; ++d) {
      WEFT_TRY(auto plan, seam::select(*plan_.devices[d], call, &refusals));
      if (plan) {
        if (d > 0 && policy_.fallback == Fallback::warn)
          warn("{} (node \"{}\") runs on {}; its operands are copied: {}", call->desc().op, where,
               plan_.devices[d]->name(), reasons(refusals));
        if (!outer.empty()) plan->why = outer + (plan->why.empty() ? "" : "; ") + plan->why;
        return add_step(std::move(plan), d, in, out, where);
      }
      if (d == 0 && call->desc().region && policy_.decompose)
        return expand(*call, in, out, where,
                      fmt::format("in the body of {}: {}", call->desc().op, reasons(refusals)));
    }
    return seam::refused(*plan_.devices[0], call->desc(), refusals, policy_, where);
  }

  Status add_step(seam::PlanPtr plan, uint32_t device, const Ids& in, const Ids& out,
                  const std::string& where) {
    Step step{.device = device, .where = where};
    for (const int32_t id : in) {
      int32_t slot = -1;
      if (id >= 0) {
        WEFT_TRY(slot, slot_on(id, device));
      }
      step.inputs.push_back(slot);
    }
    // What a result updates has the operand's place: its slot here, and its home if that is the first device.
    for (const auto& [output, input] : plan->call->desc().updates) {
      value(out[output]).slots[0] = value(in[input]).slots[0];
      value(out[output]).slots[device] = step.inputs[input];
    }
    for (const int32_t id : out) step.outputs.push_back(slot_for(id, device));
    if (const uint64_t bytes = plan->prepared.workspace)
      step.workspace = add_slot({.device = device, .type = {DType::u8, {static_cast<int64_t>(bytes)}}});
    step.plan = std::move(plan);
    plan_.steps.push_back(std::move(step));
    // A result that already has a place on the first device (a state's buffer) and was made elsewhere comes
    // home.
    for (const int32_t id : out)
      if (device != 0 && value(id).slots[0] >= 0) add_copy(value(id).slots[device], value(id).slots[0]);
    return {};
  }

  // Runs the body in place of the call. A result that updates an operand is written straight into the
  // operand's buffer when everything that reads the old value has run by then, and is copied there otherwise.
  Status expand(const seam::OwnedCall& call, const Ids& in, const Ids& out, const std::string& where,
                const std::string& outer) {
    const auto& body = *call.desc().region;
    Ids ids(body.values.size(), -1);
    for (uint32_t i = 0; i < body.n_inputs; ++i) ids[i] = in[i];
    for (size_t i = body.n_inputs; i < ids.size(); ++i) ids[i] = add_value(body.values[i]);
    for (size_t k = 0; k < out.size(); ++k) {
      // The result is the body's value under the call's own number.
      if (body.outputs[k] >= body.n_inputs) ids[body.outputs[k]] = out[k];
    }
    Ids late;
    for (const auto& [output, input] : call.desc().updates) {
      const uint32_t made = body.outputs[output];
      if (updated_by_step(body, made)) continue;
      if (made < body.n_inputs || last_read(body, input) >= made_by(body, made)) {
        late.push_back(static_cast<int32_t>(output));
      } else if (value(in[input]).slots[0] >= 0) {
        value(out[output]).slots[0] = value(in[input]).slots[0];
      }
    }
    for (const auto& step : body.steps)
      for (const auto& u : step.call.updates) value(ids[step.inputs[u.second]]).overwritten = true;
    for (const auto& step : body.steps) {
      Ids step_in, step_out;
      for (const uint32_t v : step.inputs) step_in.push_back(v == UINT32_MAX ? -1 : ids[v]);
      for (const uint32_t v : step.outputs) step_out.push_back(ids[v]);
      seam::CallDesc desc = step.call;
      desc.determinism = policy_.determinism, desc.precision = policy_.precision;
      WEFT_CHECK(place(std::move(desc), step_in, step_out, where, outer));
    }
    return settle_outputs(call, body, ids, in, out, late);
  }

  Status settle_outputs(const seam::OwnedCall& call, const seam::RegionDesc& body, const Ids& ids,
                        const Ids& in, const Ids& out, const Ids& late) {
    for (size_t k = 0; k < out.size(); ++k)  // the same body value twice, or an operand handed through
      if (ids[body.outputs[k]] != out[k]) {
        WEFT_TRY(const int32_t from, slot_on(ids[body.outputs[k]], 0));
        add_copy(from, slot_for(out[k], 0));
      }
    for (const auto& [output, input] : call.desc().updates) {
      if (std::find(late.begin(), late.end(), static_cast<int32_t>(output)) == late.end()) continue;
      WEFT_TRY(const int32_t from, slot_on(out[output], 0));
      WEFT_TRY(const int32_t home, slot_on(in[input], 0));
      add_copy(from, home);
      value(out[output]).slots.assign(plan_.devices.size(), -1);
      value(out[output]).slots[0] = home;
    }
    return {};
  }

  static bool updated_by_step(const seam::RegionDesc& body, uint32_t made) {
    for (const auto& step : body.steps)
      for (const auto& [output, input] : step.call.updates)
        if (step.outputs[output] == made) return true;
    return false;
  }
  static size_t made_by(const seam::RegionDesc& body, uint32_t v) {
    for (size_t i = 0; i < body.steps.size(); ++i)
      for (const uint32_t o : body.steps[i].outputs)
        if (o == v) return i + 1;
    return 0;
  }
  static size_t last_read(const seam::RegionDesc& body, uint32_t v) {
    size_t last = 0;
    for (size_t i = 0; i < body.steps.size(); ++i)
      for (const uint32_t in : body.steps[i].inputs)
        if (in == v) last = i + 1;
    return last;
  }

  // Steps are numbered from 1; 0 is when inputs arrive, and one past the end is when outputs are read.
  void set_lifetimes() {
    std::vector<bool> seen(plan_.slots.size(), false);
    const auto touch = [&](int32_t slot, uint32_t at) {
      if (slot < 0) return;
      auto& s = plan_.slots[static_cast<size_t>(slot)];
      if (!seen[static_cast<size_t>(slot)]) s.first_step = at, seen[static_cast<size_t>(slot)] = true;
      s.last_step = at;
      if (s.same_as >= 0) plan_.slots[static_cast<size_t>(s.same_as)].last_step = at;
    };
    for (const int32_t slot : plan_.inputs) touch(slot, 0);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto& step = plan_.steps[i];
      const auto at = static_cast<uint32_t>(i) + 1;
      for (const int32_t s : step.inputs) touch(s, at);
      for (const int32_t s : step.outputs) touch(s, at);
      touch(step.workspace, at);
    }
    // Inputs stay to the end: the same ones may be executed again.
    for (const int32_t slot : plan_.inputs) touch(slot, static_cast<uint32_t>(plan_.steps.size()) + 1);
    for (const int32_t slot : plan_.outputs) touch(slot, static_cast<uint32_t>(plan_.steps.size()) + 1);
  }

  const CompiledProgram& p_;
  const Bindings& bindings_;
  const Policy& policy_;
  ExecutionPlan plan_;
  std::vector<FlatValue> values_;
  std::vector<std::shared_ptr<const seam::RegionDesc>> regions_;
};

}  // namespace

Result<ExecutionPlan> link(const CompiledProgram& program, const Bindings& bindings,
                           std::span<seam::Device* const> devices, const Policy& policy) {
  if (devices.empty()) return invalid("link: no device was given");
  for (const auto* d : devices)
    if (!d->capability().read_write_buffer)
      return fail(Code::unsupported,
                  "{} can't read and write one buffer in a dispatch; arenas are not split yet", d->name());
  return Linker(program, bindings, devices, policy).run();
}

std::string print(const ExecutionPlan& plan) {
  const auto place = [&](int32_t slot) -> std::string {
    if (slot < 0) return "_";
    const auto& s = plan.slots[static_cast<size_t>(slot)];
    if (s.kind == Kind::state) return fmt::format("state{}", s.index);
    if (s.kind == Kind::weight) return fmt::format("weight{}", s.index);
    return fmt::format("{}+{}", plan.devices[s.device]->name(), s.offset);
  };
  std::string text;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    text += fmt::format("{:>4}  {:<34}", i, step.plan ? step.plan->kernel.id : "copy");
    for (const int32_t s : step.inputs) text += " " + place(s);
    text += " ->";
    for (const int32_t s : step.outputs) text += " " + place(s);
    text += "\n";
    if (step.plan && !step.plan->why.empty()) text += fmt::format("      because {}\n", step.plan->why);
  }
  for (size_t d = 0; d < plan.devices.size(); ++d)
    text += fmt::format("arena of {}: {} bytes, at least {} live at once\n", plan.devices[d]->name(),
                        plan.arenas[d].bytes, plan.arenas[d].live_peak);
  return text;
}

}  // namespace weft::link

#include "link/place.h"

#include <unordered_map>

#include "base/identical.h"
#include "base/log.h"
#include "link/open.h"
#include "link/resolve_types.h"

namespace weft::link {
namespace {

using program::CompiledProgram;

std::string reasons(const std::vector<seam::Refusal>& refusals) {
  std::string s;
  for (const auto& r : refusals) s += fmt::format("{}{}: {}", s.empty() ? "" : "; ", r.kernel, r.reason);
  return s;
}

uint64_t hash(const seam::CallDesc& call) {
  uint64_t h = std::hash<std::string>()(call.op);
  const auto mix = [&](uint64_t word) { h = (h ^ word) * 0x9e3779b97f4a7c15ull; };
  for (const auto& in : call.inputs) {
    mix(in ? static_cast<uint64_t>(in->dtype) + 1 : 0);
    if (in)
      for (const int64_t d : in->shape) mix(static_cast<uint64_t>(d));
  }
  return h;
}

bool same(const seam::CallDesc& a, const seam::CallDesc& b) {
  const auto equal = [](const Attr& x, const Attr& y) {
    return x.name == y.name && identical(x.value, y.value);
  };
  return a.op == b.op && a.version == b.version && a.inputs == b.inputs && a.outputs == b.outputs &&
         std::ranges::equal(a.attrs, b.attrs, equal) && a.off_default == b.off_default &&
         a.constants == b.constants && a.updates == b.updates && a.accumulate == b.accumulate && a.region == b.region;
}

// What became of a call: a plan on a device, or its body in its place.
struct Answer {
  seam::CallPtr call;
  std::string outer;  // whose body it is part of
  std::shared_ptr<seam::Plan> plan;
  uint32_t device = 0;
  std::string refused;  // by those asked before
};

class Placer {
 public:
  Placer(const CompiledProgram& program, const Bindings& bindings, std::span<seam::Device* const> devices,
         const Policy& policy, const Packings& packings)
      : program_(program), bindings_(bindings), devices_(devices), policy_(policy), packings_(packings) {}

  Result<FlatProgram> run() {
    WEFT_CHECK(add_values());
    find_constants();
    regions_.resize(program_.regions.size());
    for (const auto& call : program_.calls) {
      WEFT_TRY(auto desc, described(call));
      WEFT_CHECK(place(std::move(desc), {call.inputs.begin(), call.inputs.end()},
                       {call.outputs.begin(), call.outputs.end()}, call.where, {}));
    }
    return std::move(flat_);
  }

 private:
  FlatValue& value(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }

  Status add_values() {
    for (const auto& v : program_.values) {
      WEFT_TRY(auto type, concrete(v, bindings_));
      types_.push_back(type);
      flat_.values.push_back({.type = std::move(type)});
    }
    for (size_t i = 0; i < program_.states.size(); ++i)
      value(program_.states[i].before).state = static_cast<int32_t>(i);
    for (size_t i = 0; i < program_.weights.size(); ++i)
      value(program_.weights[i].value).weight = static_cast<int32_t>(i);
    for (const auto& call : program_.calls)
      for (const auto& u : call.updates) value(call.inputs[u.input]).overwritten = true;
    return {};
  }

  // Weights that may be packed. One that calls of several ops read, such as an embedding that gives the scores
  // too, would be there twice.
  void find_constants() {
    if (!packings_) return;
    std::vector<const std::string*> reader(program_.values.size());
    std::vector<bool> several(program_.values.size());
    for (const auto& call : program_.calls)
      for (const int32_t id : call.inputs) {
        if (id < 0) continue;
        const auto i = static_cast<size_t>(id);
        if (reader[i] && *reader[i] != call.op) several[i] = true;
        reader[i] = &call.op;
      }
    for (const auto& out : program_.outputs) several[static_cast<size_t>(out.value)] = true;
    for (size_t i = 0; i < program_.weights.size(); ++i) {
      const auto id = static_cast<size_t>(program_.weights[i].value);
      if (!several[id] && !flat_.values[id].overwritten)
        if (auto known = packings_(static_cast<int32_t>(i), 0)) constants_[program_.weights[i].value] = *known;
    }
  }

  std::vector<seam::Constant> constants_of(const Ids& in) const {
    std::vector<seam::Constant> found;
    for (uint32_t i = 0; i < in.size(); ++i)
      if (const auto at = constants_.find(in[i]); at != constants_.end()) found.push_back({i, at->second});
    return found;
  }

  Result<seam::CallDesc> described(const program::KernelCall& call) {
    WEFT_TRY(auto desc, describe(call, types_, bindings_));
    if (call.region < 0) return desc;
    auto& region = regions_[static_cast<size_t>(call.region)];
    if (!region) {
      WEFT_TRY(region, describe(program_.regions[static_cast<size_t>(call.region)], bindings_));
    }
    desc.region = region;
    return desc;
  }

  // The same elements under another shape need no step, as long as nobody writes over them.
  bool becomes_view(const seam::CallDesc& desc, const Ids& in, const Ids& out) {
    if (desc.op != "reshape" || in.size() != 1) return false;
    FlatValue &from = value(in[0]), &to = value(out[0]);
    if (from.overwritten || to.overwritten || to.over >= 0) return false;
    to.view_of = in[0];
    return true;
  }

  // `outer` says whose body this call is part of, and why that body had to be opened.
  Status place(seam::CallDesc desc, const Ids& in, const Ids& out, const std::string& where,
               const std::string& outer) {
    if (becomes_view(desc, in, out)) return {};
    desc.constants = constants_of(in);
    desc.determinism = policy_.determinism, desc.precision = policy_.precision;
    WEFT_TRY(const Answer* answer, answer_for(std::move(desc), outer, where));
    const auto& call = answer->call->desc();
    if (!answer->plan)
      return place_body(call, in, out, where, fmt::format("in the body of {}: {}", call.op, answer->refused));
    if (answer->device > 0 && policy_.fallback == Fallback::warn)
      warn("{} (node \"{}\") runs on {}; its operands are copied: {}", call.op, where,
           devices_[answer->device]->name(), answer->refused);
    for (const auto& [output, input] : call.updates) value(out[output]).over = in[input];
    flat_.calls.push_back({answer->plan, answer->device, in, out, where});
    return {};
  }

  Status place_body(const seam::CallDesc& call, const Ids& in, const Ids& out, const std::string& where,
                    const std::string& outer) {
    for (auto& step : open(flat_, call, in, out)) {
      if (step.call)
        WEFT_CHECK(place(std::move(*step.call), step.inputs, step.outputs, where, outer));
      else
        flat_.calls.push_back({nullptr, 0, std::move(step.inputs), std::move(step.outputs), where});
    }
    return {};
  }

  // Kernels are asked once for each call that differs.
  Result<const Answer*> answer_for(seam::CallDesc desc, const std::string& outer, const std::string& where) {
    const uint64_t key = hash(desc);
    const auto [first, last] = answers_.equal_range(key);
    for (auto at = first; at != last; ++at)
      if (at->second.outer == outer && same(at->second.call->desc(), desc)) return &at->second;
    WEFT_TRY(auto answer, ask(std::make_shared<const seam::OwnedCall>(std::move(desc)), outer, where));
    return &answers_.emplace(key, std::move(answer))->second;
  }

  Result<Answer> ask(const seam::CallPtr& call, const std::string& outer, const std::string& where) {
    std::vector<seam::Refusal> refusals;
    const size_t reach = policy_.fallback == Fallback::forbid ? 1 : devices_.size();
    for (uint32_t d = 0; d < reach; ++d) {
      WEFT_TRY(auto plan, seam::select(*devices_[d], call, &refusals));
      if (plan) {
        if (!outer.empty()) plan->why = outer + (plan->why.empty() ? "" : "; ") + plan->why;
        return Answer{call, outer, std::move(plan), d, reasons(refusals)};
      }
      if (d == 0 && call->desc().region && policy_.decompose)
        return Answer{call, outer, nullptr, 0, reasons(refusals)};
    }
    return seam::refused(*devices_[0], call->desc(), refusals, policy_, where);
  }

  const CompiledProgram& program_;
  const Bindings& bindings_;
  const std::span<seam::Device* const> devices_;
  const Policy& policy_;
  const Packings& packings_;
  std::unordered_map<int32_t, std::vector<std::string>> constants_;  // by value
  std::vector<seam::ConcreteType> types_;  // of the program's values
  std::vector<std::shared_ptr<const seam::RegionDesc>> regions_;
  std::unordered_multimap<uint64_t, Answer> answers_;  // its elements stay where they are
  FlatProgram flat_;
};

}  // namespace

Result<FlatProgram> place(const CompiledProgram& program, const Bindings& bindings,
                          std::span<seam::Device* const> devices, const Policy& policy,
                          const Packings& packings) {
  return Placer(program, bindings, devices, policy, packings).run();
}

}  // namespace weft::link

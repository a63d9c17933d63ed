#include "link/place.h"

#include <unordered_map>

#include "base/identical.h"
#include "base/log.h"
#include "base/shown.h"
#include "link/open.h"
#include "link/resolve_types.h"
#include "link/share.h"

namespace weft::link {
namespace {

using program::CompiledProgram;

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
         a.constants == b.constants && a.updates == b.updates && a.accumulate == b.accumulate &&
         a.region == b.region;
}

// The decision for a call: a kernel on a device, or its body.
struct Answer {
  seam::CallPtr call;
  std::string outer;  // whose body it is part of
  std::shared_ptr<seam::PreparedKernel> prepared;
  uint32_t device = 0;
  std::string refused;  // by those asked before
  bool lost = false;    // nobody takes it
};

constexpr size_t kLostNamed = 20;  // calls that an error lists

class Placer {
 public:
  Placer(const CompiledProgram& program, const Bindings& bindings, std::span<seam::Device* const> devices,
         const Policy& policy, const Packings& packings, const std::vector<Choice>* known)
      : program_(program),
        bindings_(bindings),
        devices_(devices),
        policy_(policy),
        packings_(packings),
        known_(known),
        bodies_(program, bindings) {}

  Result<FlatProgram> run() {
    WEFT_CHECK(add_values());
    find_constants();
    for (const auto& call : program_.calls) {
      WEFT_TRY(auto desc, described(call));
      WEFT_CHECK(place(std::move(desc), {call.inputs.begin(), call.inputs.end()},
                       {call.outputs.begin(), call.outputs.end()}, call, {}));
    }
    WEFT_CHECK(all_placed());
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

  void find_constants() {
    if (!packings_) return;
    const auto packable = packable_weights(program_);
    for (size_t i = 0; i < program_.weights.size(); ++i)
      if (packable[i])
        if (auto known = packings_(static_cast<int32_t>(i), 0))
          constants_[program_.weights[i].value] = *known;
  }

  std::vector<seam::Constant> constants_of(const Ids& in) const {
    std::vector<seam::Constant> found;
    for (uint32_t i = 0; i < in.size(); ++i)
      if (const auto at = constants_.find(in[i]); at != constants_.end())
        found.push_back({i, at->second, program_.symbols.empty()});
    return found;
  }

  Result<seam::CallDesc> described(const program::KernelCall& call) {
    WEFT_TRY(auto desc, describe(call, types_, bindings_));
    WEFT_TRY(desc.region, bodies_.of(call.region));
    return desc;
  }

  // A view needs no step, as long as nothing overwrites its memory.
  bool becomes_view(const seam::CallDesc& desc, const Ids& in, const Ids& out) {
    const auto offset = in.size() == 1 ? view_offset(desc, devices_) : std::nullopt;
    return offset && becomes_view(in[0], out[0], *offset);
  }
  bool becomes_view(int32_t in, int32_t out, uint64_t offset) {
    FlatValue &from = value(in), &to = value(out);
    if (from.overwritten || to.overwritten || to.over >= 0) return false;
    to.view_of = in, to.view_offset = offset;
    return true;
  }

  // `node`: the program's call. `outer` names the call whose body this call is part of, and why that was
  // refused.
  Status place(seam::CallDesc desc, const Ids& in, const Ids& out, const program::KernelCall& node,
               const std::string& outer) {
    const bool view = becomes_view(desc, in, out);
    const Choice* known = nullptr;
    if (known_) {
      if (flat_.choices.size() == known_->size()) return changed(node, "there are more calls");
      known = &(*known_)[flat_.choices.size()];
      if (known->view != view) return changed(node, "another result is a view");
    }
    if (view) {
      flat_.choices.push_back({.view = true});
      return {};
    }
    desc.constants = constants_of(in);
    desc.determinism = policy_.determinism, desc.precision = policy_.precision;
    if (known) {
      desc.updates.insert(desc.updates.end(), known->reuses.begin(), known->reuses.end());
      desc.accumulate |= known->adds;
      for (const auto& [output, input] : known->reuses)
        if (!(desc.inputs[input] == desc.outputs[output]))
          return changed(node, "a result is not as large as the operand whose memory it takes");
    }
    WEFT_TRY(const Answer* answer, answer_for(std::move(desc), outer, node, known));
    if (answer->lost) return {};
    const auto& call = answer->call->desc();
    Choice& choice = flat_.choices.emplace_back(known ? *known : Choice{});
    choice.kernel = answer->prepared ? &answer->prepared->kernel : nullptr, choice.device = answer->device;
    choice.workspace = answer->prepared ? answer->prepared->plan.workspace : 0;
    uint64_t workspace = 0;
    if (known && answer->prepared) {
      workspace = known->workspace;
      if (answer->prepared->plan.workspace > workspace) return changed(node, "it wants a larger workspace");
    }
    if (!answer->prepared)
      return place_body(call, in, out, node, fmt::format("in the body of {}: {}", call.op, answer->refused));
    if (answer->device > 0 && policy_.fallback == Fallback::warn)
      warn("{} ({}) runs on {}; its operands are copied: {}", call.op, shown_node(node.where, node.from),
           devices_[answer->device]->name(), answer->refused);
    for (const auto& update : call.updates)
      if (!known || std::ranges::find(known->reuses, update) == known->reuses.end())
        value(out[update.first]).over = in[update.second];
    flat_.calls.push_back({answer->prepared, answer->device, in, out, node.where, node.from, workspace,
                           flat_.choices.size() - 1});
    return {};
  }

  Status place_body(const seam::CallDesc& call, const Ids& in, const Ids& out,
                    const program::KernelCall& node, const std::string& outer) {
    for (auto& step : open(flat_, call, in, out)) {
      if (step.call)
        WEFT_CHECK(place(std::move(*step.call), step.inputs, step.outputs, node, outer));
      else if (!becomes_view(step.inputs[0], step.outputs[0], 0))
        flat_.calls.push_back(
            {nullptr, 0, std::move(step.inputs), std::move(step.outputs), node.where, node.from});
    }
    return {};
  }

  // Kernels are asked once for each distinct call.
  Result<const Answer*> answer_for(seam::CallDesc desc, const std::string& outer,
                                   const program::KernelCall& node, const Choice* known) {
    const uint64_t key = hash(desc);
    const auto [first, last] = answers_.equal_range(key);
    for (auto at = first; at != last; ++at)
      if (at->second.outer == outer && same(at->second.call->desc(), desc) && is_as(at->second, known))
        return &at->second;
    const auto call = std::make_shared<const seam::OwnedCall>(std::move(desc));
    WEFT_TRY(auto answer, known ? repeat(call, outer, node, *known) : ask(call, outer, node));
    return &answers_.emplace(key, std::move(answer))->second;
  }

  static bool is_as(const Answer& a, const Choice* known) {
    return !known ||
           ((a.prepared ? &a.prepared->kernel : nullptr) == known->kernel && a.device == known->device);
  }

  // The same kernel for other sizes.
  Result<Answer> repeat(const seam::CallPtr& call, const std::string& outer, const program::KernelCall& node,
                        const Choice& known) {
    if (!known.kernel) return Answer{call, outer, nullptr, 0, "opened for other sizes"};
    auto prepared = seam::prepare_with(*devices_[known.device], *known.kernel, call);
    if (!prepared.ok()) return prepared.take_status().at(shown_node(node.where, node.from));
    return Answer{call, outer, std::move(prepared).value(), known.device, {}};
  }
  static Status changed(const program::KernelCall& node, std::string_view why) {
    return fail(Code::unsupported, "for these sizes, {} ({})", why, shown_node(node.where, node.from));
  }

  Result<Answer> ask(const seam::CallPtr& call, const std::string& outer, const program::KernelCall& node) {
    std::vector<seam::Refusal> refusals;
    const size_t reach = policy_.fallback == Fallback::forbid ? 1 : devices_.size();
    for (uint32_t d = 0; d < reach; ++d) {
      WEFT_TRY(auto prepared, seam::select(*devices_[d], call, &refusals));
      if (prepared) {
        if (!outer.empty()) prepared->why = outer + (prepared->why.empty() ? "" : "; ") + prepared->why;
        return Answer{call, outer, std::move(prepared), d, text(refusals)};
      }
      if (d == 0 && call->desc().region && policy_.decompose)
        return Answer{call, outer, nullptr, 0, text(refusals)};
    }
    Status why = seam::refused(*devices_[0], call->desc(), refusals, policy_,
                               node.where.empty() ? "" : shown_node(node.where, node.from));
    const auto said = [&](const Status& s) { return s.message() == why.message(); };
    if (std::ranges::none_of(lost_, said)) lost_.push_back(std::move(why));
    return Answer{call, outer, nullptr, 0, {}, true};
  }

  /// An error lists all calls that nobody takes: whoever adds kernels sees how many are missing.
  Status all_placed() {
    if (lost_.size() <= 1) return lost_.empty() ? Status() : std::move(lost_[0]);
    std::string s = fmt::format("{} different calls have no kernel", lost_.size());
    for (size_t i = 0; i < std::min(kLostNamed, lost_.size()); ++i) s += "\n" + lost_[i].message();
    if (lost_.size() > kLostNamed) s += fmt::format("\nand {} more", lost_.size() - kLostNamed);
    return Status(Code::unsupported, std::move(s));
  }

  const CompiledProgram& program_;
  const Bindings& bindings_;
  const std::span<seam::Device* const> devices_;
  const Policy& policy_;
  const Packings& packings_;
  const std::vector<Choice>* known_;
  std::unordered_map<int32_t, std::vector<std::string>> constants_;  // by value
  std::vector<seam::ConcreteType> types_;                            // of the program's values
  Bodies bodies_;
  std::unordered_multimap<uint64_t, Answer> answers_;  // its elements stay where they are
  std::vector<Status> lost_;                           // one for each different call that nobody takes
  FlatProgram flat_;
};

}  // namespace

std::vector<bool> packable_weights(const CompiledProgram& program) {
  std::vector<const std::string*> reader(program.values.size());
  std::vector<bool> packable(program.values.size(), true), of_weights;
  for (const auto& call : program.calls) {
    for (const int32_t id : call.inputs) {
      if (id < 0) continue;
      const auto i = static_cast<size_t>(id);
      if (reader[i] && *reader[i] != call.op) packable[i] = false;
      reader[i] = &call.op;
    }
    for (const auto& u : call.updates) packable[static_cast<size_t>(call.inputs[u.input])] = false;
  }
  for (const auto& out : program.outputs) packable[static_cast<size_t>(out.value)] = false;
  for (const auto& weight : program.weights)
    of_weights.push_back(packable[static_cast<size_t>(weight.value)]);
  return of_weights;
}

Result<FlatProgram> place(const CompiledProgram& program, const Bindings& bindings,
                          std::span<seam::Device* const> devices, const Policy& policy,
                          const Packings& packings, const std::vector<Choice>* known) {
  return Placer(program, bindings, devices, policy, packings, known).run();
}

}  // namespace weft::link

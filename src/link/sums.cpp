#include <algorithm>
#include <map>

#include "link/share.h"

namespace weft::link {
namespace {

// Is the call a plain sum of its operands, from the first to the last?
bool is_sum(const seam::CallDesc& call) {
  const auto alike = [&](const auto& t) { return t && *t == call.outputs[0]; };
  if (call.outputs.size() != 1 || call.accumulate || !call.updates.empty() ||
      !std::ranges::all_of(call.inputs, alike))
    return false;
  if (call.op == "add") return true;
  if (call.op != "region" || !call.region) return false;
  const seam::RegionDesc& body = *call.region;
  uint32_t sum = 0;  // of the operands before step i + 1
  for (uint32_t i = 0; i < body.steps.size(); ++i) {
    const auto& step = body.steps[i];
    if (step.call.op != "add" || step.inputs.size() != 2 ||
        !(body.values[step.outputs[0]] == call.outputs[0]))
      return false;
    if (!std::ranges::is_permutation(step.inputs, std::array{sum, i + 1})) return false;
    sum = step.outputs[0];
  }
  return body.n_inputs == body.steps.size() + 1 && body.outputs[0] == sum;
}

class Sums {
 public:
  Sums(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided)
      : flat_(flat), devices_(devices), decided_(decided), flow_(program, flat) {}

  // Makes the sum in the memory of its first operand: each other one's maker adds to it, when all else that
  // reads the first one has.
  bool make_in_place(const FlatCall& call, size_t i) {
    if (!call.prepared || !is_here(call) || !is_sum(call.prepared->call->desc())) return false;
    const FlatValue& out = value(call.outputs[0]);
    if (out.over >= 0 || out.overwritten || out.view_of >= 0) return false;  // it has its place, or lends it
    std::vector<std::shared_ptr<seam::PreparedKernel>> prepared;
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const int32_t v = call.inputs[k];
      const Flow::Fact& fact = flow_.of(v);
      if (!flow_.is_own(v) || fact.last != i || (k > 0 && fact.readers > 1)) return false;
      if (k == 0) continue;
      const Flow::Fact& first = flow_.of(call.inputs[0]);
      if (fact.maker <= flow_.of(call.inputs[k - 1]).maker) return false;
      if (first.readers > 1 && static_cast<int64_t>(first.before) >= fact.maker) return false;
      prepared.push_back(adding(maker_of(v), flow_.root(v)));
      if (!prepared.back()) return false;
    }
    for (size_t k = 1; k < call.inputs.size(); ++k)
      add_to(call.inputs[k - 1], call.inputs[k], prepared[k - 1]);
    flow_.becomes(call.outputs[0], call.inputs.back());
    value(call.outputs[0]).view_of = call.inputs.back();
    return true;
  }

 private:
  FlatValue& value(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }
  FlatCall& maker_of(int32_t v) { return flat_.calls[static_cast<size_t>(flow_.of(v).maker)]; }
  bool is_here(const FlatCall& call) const { return devices_[call.device]->shares_memory(*devices_[0]); }

  // The call's kernel, prepared to add its result v to what is there; null where it refuses.
  std::shared_ptr<seam::PreparedKernel> adding(const FlatCall& call, int32_t v) {
    if (!call.prepared || !is_here(call) || call.onto >= 0) return nullptr;
    const auto k = static_cast<uint64_t>(std::ranges::find(call.outputs, v) - call.outputs.begin());
    if (k == call.outputs.size()) return nullptr;  // made in parts
    seam::CallDesc desc = call.prepared->call->desc();
    if (decided_) return desc.accumulate >> k & 1 ? call.prepared : nullptr;
    if (!desc.updates.empty()) return nullptr;
    desc.accumulate |= uint64_t{1} << k;
    const auto [at, fresh] = prepared_.try_emplace({call.prepared, k});
    if (!fresh) return at->second;
    return at->second = ask_again(call, std::move(desc), devices_);
  }

  void add_to(int32_t before, int32_t v, std::shared_ptr<seam::PreparedKernel> prepared) {
    const int32_t root = flow_.root(v);
    FlatCall& maker = maker_of(v);
    maker.prepared = std::move(prepared), maker.onto = flow_.root(before);
    flat_.choices[maker.choice].adds = maker.prepared->call->desc().accumulate;
    value(root).over = maker.onto;
  }

  FlatProgram& flat_;
  const Devices devices_;
  const bool decided_;
  Flow flow_;
  std::map<std::pair<std::shared_ptr<seam::PreparedKernel>, uint64_t>, std::shared_ptr<seam::PreparedKernel>>
      prepared_;
};

}  // namespace

void add_in_place(const program::CompiledProgram& program, FlatProgram& flat, Devices devices, bool decided) {
  Sums sums(program, flat, devices, decided);
  std::vector<bool> gone(flat.calls.size());
  for (size_t i = 0; i < flat.calls.size(); ++i) gone[i] = sums.make_in_place(flat.calls[i], i);
  size_t i = 0;
  std::erase_if(flat.calls, [&](const FlatCall&) { return gone[i++]; });
}

}  // namespace weft::link

#include <algorithm>
#include <map>

#include "link/share.h"

namespace weft::link {

namespace {

using Updates = std::vector<std::pair<uint32_t, uint32_t>>;

class Reuse {
 public:
  Reuse(const program::CompiledProgram& program, FlatProgram& flat, Devices devices)
      : flat_(flat), devices_(devices), flow_(program, flat) {}

  void run() {
    for (size_t i = 0; i < flat_.calls.size(); ++i)
      if (flat_.calls[i].prepared && is_here(flat_.calls[i])) reuse_in(flat_.calls[i], i);
  }

 private:
  FlatValue& value(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }
  bool is_here(const FlatCall& call) const { return devices_[call.device]->shares_memory(*devices_[0]); }

  // Calls that update operands already are left alone.
  void reuse_in(FlatCall& call, size_t i) {
    const seam::CallDesc& desc = call.prepared->call->desc();
    if (!desc.updates.empty() || desc.accumulate) return;
    Updates taken;
    for (uint32_t k = 0; k < call.outputs.size(); ++k) {
      const FlatValue& out = value(call.outputs[k]);
      if (out.over >= 0 || out.view_of >= 0) continue;
      for (uint32_t n = 0; n < call.inputs.size(); ++n)
        if (may_go(call, i, n, out) && try_with(call, taken, {k, n})) break;
    }
    for (const auto& [k, n] : taken) {
      value(call.outputs[k]).over = call.inputs[n];
      flow_.takes_over(call.outputs[k]);
    }
    flat_.choices[call.choice].reuses = std::move(taken);
  }

  // Is operand n dead after this call, and not read through another operand?
  bool may_go(const FlatCall& call, size_t i, uint32_t n, const FlatValue& out) const {
    const int32_t in = call.inputs[n];
    if (in < 0) return false;
    if (!flow_.is_own(in) || flow_.of(in).last != i) return false;
    if (!is_here(flat_.calls[static_cast<size_t>(flow_.of(in).maker)])) return false;
    if (!(flat_.values[static_cast<size_t>(in)].type == out.type)) return false;
    const int32_t root = flow_.root(in);
    return std::ranges::count_if(call.inputs,
                                 [&](int32_t other) { return other >= 0 && flow_.root(other) == root; }) == 1;
  }

  // Asks the call's kernel for one more update; if it accepts, the call uses the new prepared kernel.
  bool try_with(FlatCall& call, Updates& taken, std::pair<uint32_t, uint32_t> more) {
    if (std::ranges::any_of(taken, [&](const auto& t) { return t.second == more.second; })) return false;
    auto prepared = updating(call, more);
    if (!prepared) return false;
    call.prepared = std::move(prepared);
    taken.push_back(more);
    return true;
  }

  std::shared_ptr<seam::PreparedKernel> updating(const FlatCall& call, std::pair<uint32_t, uint32_t> more) {
    const auto [at, fresh] = prepared_.try_emplace({call.prepared, more});
    if (!fresh) return at->second;
    seam::CallDesc desc = call.prepared->call->desc();
    desc.updates.push_back(more);
    return at->second = ask_again(call, std::move(desc), devices_);
  }

  FlatProgram& flat_;
  const Devices devices_;
  Flow flow_;
  std::map<std::pair<std::shared_ptr<seam::PreparedKernel>, std::pair<uint32_t, uint32_t>>,
           std::shared_ptr<seam::PreparedKernel>>
      prepared_;  // asked before; null: refused
};

}  // namespace

void reuse_operands(const program::CompiledProgram& program, FlatProgram& flat, Devices devices,
                    bool decided) {
  if (!decided) return Reuse(program, flat, devices).run();
  for (const FlatCall& call : flat.calls)
    if (call.prepared)
      for (const auto& [output, input] : flat.choices[call.choice].reuses)
        flat.values[static_cast<size_t>(call.outputs[output])].over = call.inputs[input];
}

}  // namespace weft::link

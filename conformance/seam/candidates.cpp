#include "conformance/seam/candidates.h"

namespace weft::conformance {

HostTensor host_tensor(const Array& a) {
  return {{a.dtype, IntList(a.shape.begin(), a.shape.end())}, encode(a)};
}

Ask ask_of(const PreparedCase& c) {
  Ask ask{.op = c.op.name};
  for (const Array& a : c.inputs) ask.inputs.push_back(host_tensor(a));
  for (size_t i = 0; i < c.attrs.size(); ++i) ask.attrs.push_back({c.op.attrs[i].name, c.attrs[i]});
  return ask;
}

Candidates candidates_of(Rig& rig, const Ask& ask) {
  Candidates found;
  const auto call = value_or_raise(describe(ask));
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels) {
      const std::string_view op = k->op;
      if (op != ask.op && !(op == "region" && call->desc().region)) continue;
      auto plan = rig.plan(call, *k);
      if (plan.ok())
        found.plans.push_back(std::move(plan).value());
      else
        found.refusals += (found.refusals.empty() ? "" : "; ") + plan.status().message();
    }
  if (found.plans.empty() && found.refusals.empty()) found.refusals = "no kernel is named so";
  return found;
}

bool gives_equal_bits(Rig& rig, const Ask& ask, seam::PreparedPtr& plan) {
  if (plan->plan.determinism >= WEFT_DETERMINISM_RUN) return true;
  Ask equal = ask;
  equal.determinism = WEFT_DETERMINISM_RUN;
  auto again = rig.plan(value_or_raise(describe(equal)), plan->kernel);
  if (again.status().code() == Code::unsupported) return false;
  plan = value_or_raise(std::move(again));
  return true;
}

}  // namespace weft::conformance

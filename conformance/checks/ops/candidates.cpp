#include "conformance/check.h"
#include "conformance/prepared.h"
#include "conformance/run.h"
#include "conformance/seam/rig.h"

// Not only the kernel that is chosen: each one that says yes, on its first call and on those after.
namespace weft::conformance {
namespace {

Ask ask_of(const PreparedCase& c) {
  Ask ask{.op = c.op.name};
  for (const Array& a : c.inputs) {
    HostTensor t{{a.dtype, IntList(a.shape.begin(), a.shape.end())}, encode(a)};
    ask.inputs.push_back(std::move(t));
  }
  for (size_t i = 0; i < c.attrs.size(); ++i) ask.attrs.push_back({c.op.attrs[i].name, c.attrs[i]});
  return ask;
}

std::string judged(const PreparedCase& c, const Rig::Run& ran, const char* id, int call) {
  for (size_t k = 0; k < c.right.size(); ++k) {
    const auto& out = ran.outputs[k];
    const Array got = decode(out.type.dtype, Dims(out.type.shape.begin(), out.type.shape.end()), out.bytes);
    if (const auto v = judge(got, c.right[k]); !v.ok)
      return fmt::format("{}, call {}: output {}: {}", id, call, c.op.outputs[k], v.reason);
  }
  return "";
}

Found each_candidate(CheckRun& run, Rig& rig, const PreparedCase& c) {
  const Ask ask = ask_of(c);
  const auto call = value_or_raise(describe(ask));
  std::string refusals;
  int took = 0;
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels) {
      const std::string_view op = k->op;
      if (op != c.op.name && !(op == "region" && call->desc().region)) continue;
      auto plan = rig.plan(call, *k);
      if (!plan.ok()) {
        refusals += (refusals.empty() ? "" : "; ") + plan.status().message();
        continue;
      }
      ++took;
      run.covered.insert(k->id);
      for (int n = 1; n <= 3; ++n)
        if (auto words = judged(c, value_or_raise(rig.launch(*plan.value(), ask)), k->id, n); !words.empty())
          return Found::wrong(words);
    }
  return took ? Found() : Found::refused(refusals.empty() ? "no kernel is named so" : refusals);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const auto& file : case_files())
    if (run.wants(file.op))
      each_case(
          op_of(file), file.cases(), [&](const std::string& label) { return run.wants(label); },
          [&](const PreparedCase& c) { run.run(c.label, [&] { return each_candidate(run, rig, c); }); });
}

}  // namespace

extern const Check candidates_check = {
    "candidates", "each kernel that accepts a call runs it rightly, again and again", run};

}  // namespace weft::conformance

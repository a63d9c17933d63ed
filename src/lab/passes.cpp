#include "lab/passes.h"

#include "conformance/noise.h"
#include "runtime/devices.h"
#include "weft/backends.h"

namespace weft::lab {

using conformance::Bounded;
using program::CompiledProgram;
using runtime::HostTensor;

static constexpr const char* kOracle = "reference";

Result<std::vector<HostTensor>> run_whole(const CompiledProgram& program, std::span<const HostTensor> inputs,
                                          const std::string& backend, const Policy& policy) {
  WEFT_TRY(auto devices, runtime::devices_for(backend, policy));
  WEFT_TRY(auto session, runtime::Session::create(std::make_shared<const CompiledProgram>(program),
                                                  std::move(devices), policy));
  WEFT_TRY(auto out, session->run(inputs));
  for (const auto& s : program.states) {
    WEFT_TRY(auto value, session->state(s.name));
    out.push_back(std::move(value));
  }
  return out;
}

Result<std::vector<Bounded>> bound_whole(const CompiledProgram& program, std::span<const HostTensor> inputs) {
  WEFT_TRY(const Values first, first_values(program, inputs));
  WEFT_TRY(const auto whole, whole_graph(program, first));
  const OnBackend oracle(kOracle);  // for ops without operands, too
  return conformance::noise_bound(whole.graph, whole.values);
}

Status PassCheck::begin(const CompiledProgram& program) {
  WEFT_TRY(in_, inputs_(program));
  WEFT_TRY(const auto p, without_symbols(program, in_));
  WEFT_TRY(bounds_, bound_whole(p, in_));
  return {};
}

std::string PassCheck::judge(CompiledProgram program) const {
  if (Status s = program::verify(program); !s.ok()) return "no valid program: " + s.message();
  auto out = run_whole(program, in_, kOracle, {});
  if (!out.ok()) return "it does not run: " + out.status().message();
  if (out->size() != bounds_.size())
    return fmt::format("{} outputs and states; there were {}", out->size(), bounds_.size());
  for (size_t k = 0; k < bounds_.size(); ++k) {
    const auto got = to_array((*out)[k]);
    const auto& want = bounds_[k].value;
    const std::string name = k < program.outputs.size()
                                 ? "output " + program.outputs[k].name
                                 : "state " + program.states[k - program.outputs.size()].name;
    if (got.dtype != want.dtype || got.shape != want.shape) return name + " has another type";
    if (const auto verdict = conformance::judge(got, bounds_[k]); !verdict.ok)
      return fmt::format("{}: {}", name, verdict.reason);
  }
  return "";
}

Status PassCheck::see(const compiler::Stage& stage) {
  if (wrong()) return {};
  auto program = stage.program();
  JudgedStage judged{stage.after, program.ok() ? program->calls.size() : 0, ""};
  if (!program.ok()) {
    judged.wrong = "no program: " + program.status().message();
  } else {
    if (stages_.empty()) WEFT_CHECK(begin(*program).at("before the first pass"));
    judged.wrong = judge(std::move(program).value());
  }
  stages_.push_back(std::move(judged));
  return {};
}

const JudgedStage* PassCheck::wrong() const {
  return stages_.empty() || stages_.back().wrong.empty() ? nullptr : &stages_.back();
}

}  // namespace weft::lab

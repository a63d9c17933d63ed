#include "compiler/compile.h"

#include <array>
#include <map>

#include "runtime/devices.h"
#include "runtime/session.h"
#include "weft/jit.h"

namespace weft {
namespace {

Result<std::shared_ptr<runtime::Session>> open_session(program::CompiledProgram program,
                                                       const CompileOptions& options) {
  auto shared = std::make_shared<const program::CompiledProgram>(std::move(program));
  WEFT_TRY(auto devices, runtime::devices_for(options.backend, options.policy));
  WEFT_TRY(auto session, runtime::Session::create(std::move(shared), std::move(devices), options.policy));
  return std::shared_ptr<runtime::Session>(std::move(session));
}

// Values of what the trace captured, by the graph's names.
compiler::WeightSource captured_values(const Traced& traced) {
  std::map<std::string, Tensor> by_name;
  for (size_t i = 0; i < traced.states.size(); ++i) by_name[traced.graph->states[i].name] = traced.states[i];
  for (size_t i = 0; i < traced.weights.size(); ++i)
    by_name[traced.graph->weights[i].name] = traced.weights[i];
  return [by_name](const std::string& name) -> Result<program::Blob> {
    const auto at = by_name.find(name);
    if (at == by_name.end()) return fail(Code::internal, "the trace captured nothing named {}", name);
    const auto bytes = at->second.to_bytes();
    return program::Blob::copy_of(bytes.data(), bytes.size());
  };
}

Tensor to_tensor(const runtime::HostTensor& t, const runtime::Session& session) {
  return Tensor::from_bytes(t.bytes, t.type.shape, t.type.dtype, session.backend());
}

}  // namespace

Compiled compile(const TracedFunction& function, const std::vector<InputSpec>& inputs,
                 const CompileOptions& options) {
  const Traced traced = trace(function, inputs);
  auto program = value_or_raise(compiler::compile(*traced.graph, captured_values(traced),
                                                  {.name = options.name, .fuse = options.fuse}));
  return Compiled(value_or_raise(open_session(std::move(program), options)));
}

Compiled load_program(const std::string& path, const CompileOptions& options) {
  return Compiled(value_or_raise(open_session(value_or_raise(compiler::read_file(path)), options)));
}

std::vector<Tensor> Compiled::operator()(const std::vector<Tensor>& inputs) {
  std::vector<runtime::HostTensor> in;
  for (const auto& t : inputs) in.push_back({{t.dtype(), t.sizes()}, t.to_bytes()});
  std::vector<Tensor> out;
  for (const auto& t : value_or_raise(session_->run(in))) out.push_back(to_tensor(t, *session_));
  return out;
}

void Compiled::run(std::span<const HostArray> inputs, std::span<const std::span<std::byte>> outputs) {
  std::array<runtime::HostView, 8> in;
  if (inputs.size() > in.size()) throw Error(invalid("at most {} inputs, got {}", in.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    in[i] = {{inputs[i].dtype, IntList(inputs[i].sizes)}, inputs[i].bytes};
  raise_if(session_->run_into(std::span(in).first(inputs.size()), outputs));
}

Tensor Compiled::state(const std::string& name) const {
  return to_tensor(value_or_raise(session_->state(name)), *session_);
}

std::vector<std::string> Compiled::state_names() const {
  std::vector<std::string> names;
  for (const auto& s : session_->program().states) names.push_back(s.name);
  return names;
}

void Compiled::save(const std::string& path) const {
  raise_if(program::write_file(value_or_raise(session_->snapshot()), path));
}
std::string Compiled::text() const { return program::print(session_->program()); }
static const link::ExecutionPlan& last_plan(const runtime::Session& session) {
  const auto* plan = session.plan_or_null();
  if (!plan)
    throw Error(
        invalid("{} has no plan yet: it is made for the sizes of the first run", session.program().name));
  return *plan;
}
std::string Compiled::plan_text() const { return link::print(last_plan(*session_)); }
ArenaUse Compiled::arena() const {
  const auto& arena = last_plan(*session_).arenas[0];
  return {arena.bytes, arena.live_peak};
}

}  // namespace weft

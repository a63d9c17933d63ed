#include "weft/trace.h"

#include <set>

#include "eager/trace_state.h"

namespace weft {
namespace eager {
namespace {
thread_local TraceState* active = nullptr;
std::atomic<uint64_t> trace_ids{0};
}  // namespace

TraceState::TraceState() : id_(++trace_ids) { active = this; }

TraceState::~TraceState() {
  active = nullptr;
  for (auto& c : captured) c.tensor.impl()->more().grad = c.grad_before;
}

TraceState* active_trace() { return active; }

Result<ir::Value> TraceState::value_of(const Tensor& t) {
  auto* impl = t.impl();
  if (impl->traced) {
    if (impl->trace != id_)
      return invalid("a tensor of a trace that has ended can't be used; return it as an output");
    return graph.value(impl->traced_value);
  }
  const auto [at, fresh] = index_.try_emplace(impl->buffer.get(), captured.size());
  if (fresh) {
    std::string name = t.name().empty() ? fmt::format("captured{}", captured.size()) : t.name();
    const std::string base = name;
    const auto taken = [&](const std::string& n) {
      return std::any_of(captured.begin(), captured.end(), [&](const auto& c) { return c.name == n; });
    };
    for (int k = 2; taken(name); ++k) name = fmt::format("{}.{}", base, k);
    const int32_t id = graph.state(name, t.type()).id();
    captured.push_back({t, t.grad(), std::move(name), id, id});
    captured.back().tensor.clear_grad();
  }
  return graph.value(captured[at->second].now);
}

void TraceState::rebind(const Tensor& t, ir::Value value) {
  if (t.impl()->traced) {
    t.impl()->traced_value = value.id();
  } else {
    captured[index_.at(t.impl()->buffer.get())].now = value.id();
  }
}

}  // namespace eager

namespace {

// Captured tensors that were never updated are constants of the program, not states.
Traced finish(eager::TraceState& trace) {
  Traced out;
  auto& g = trace.graph;
  g.states.clear();
  for (const auto& c : trace.captured) {
    if (c.now == c.before) {
      g.weights.push_back({c.name, c.before});
      out.weights.push_back(c.tensor);
    } else {
      g.states.push_back({c.name, c.before, c.now});
      out.states.push_back(c.tensor);
    }
  }
  raise_if(ir::verify(g));
  out.graph = std::make_shared<ir::Graph>(std::move(g));
  return out;
}

}  // namespace

Traced trace(const TracedFunction& function, const std::vector<InputSpec>& inputs) {
  if (eager::active_trace()) throw Error(invalid("a trace is being recorded on this thread already"));
  eager::TraceState state;
  std::vector<Tensor> stand_ins;
  for (const auto& spec : inputs) stand_ins.push_back(state.wrap(state.graph.input(spec.name, spec.type)));
  const auto results = function(stand_ins);
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& t = results[i];
    if (!t) throw Error(invalid("trace: output {} is an empty tensor", i));
    state.graph.output(t.name().empty() ? fmt::format("output{}", i) : t.name(),
                       value_or_raise(state.value_of(t)));
  }
  return finish(state);
}

std::string Traced::text() const { return ir::print(*graph); }

static thread_local std::string scopes;

// Extends a path; returns its previous length.
static size_t append(std::string& path, std::string_view name) {
  const size_t before = path.size();
  if (name.empty()) return before;
  if (before > 0) path += '.';
  path += name;
  return before;
}

Scope::Scope(std::string_view name) : length_(append(scopes, name)) {
  if (auto* trace = eager::active_trace()) traced_length_ = append(trace->graph.scope, name);
}
Scope::~Scope() {
  scopes.resize(length_);
  if (auto* trace = eager::active_trace(); trace && traced_length_ != std::string::npos)
    trace->graph.scope.resize(traced_length_);
}

Status in_scope(Status why) {
  const std::string& message = why.message();
  const bool there = message.starts_with(scopes) && message.size() > scopes.size() &&
                     (message[scopes.size()] == ':' || message[scopes.size()] == '.');
  return scopes.empty() || there ? std::move(why) : std::move(why).at(scopes);
}

}  // namespace weft

#include "conformance/graphs/run.h"

#include "compiler/compile.h"
#include "conformance/graphs/shrink.h"
#include "runtime/session.h"
#include "seam/registry.h"

namespace weft::conformance {
namespace {

using Kind = GraphVerdict::Kind;
using runtime::HostTensor;

HostTensor to_host(const Array& a) { return {{a.dtype, IntList(a.shape.begin(), a.shape.end())}, encode(a)}; }
Array from_host(const HostTensor& t) {
  return decode(t.type.dtype, Dims(t.type.shape.begin(), t.type.shape.end()), t.bytes);
}

// Runs a case in a session and judges all that it gives.
class CaseRun {
 public:
  CaseRun(const Turn& turn, runtime::Session& session) : c_(*turn.of), set_(turn.set), session_(session) {}

  Status run() {
    for (const auto& s : c_.graph.states)
      WEFT_CHECK(session_.set_state(s.name, to_host(value(s.before).value)));
    std::vector<HostTensor> in;
    for (const auto& i : c_.graph.inputs) in.push_back(to_host(value(i.value).value));
    WEFT_TRY(const auto out, session_.run(in));
    for (size_t k = 0; k < out.size(); ++k)
      judge_one("output", c_.graph.outputs[k].name, out[k], value(c_.graph.outputs[k].value));
    for (const auto& s : c_.graph.states) {
      WEFT_TRY(const auto after, session_.state(s.name));
      judge_one("state", s.name, after, value(s.after));
    }
    return {};
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Bounded& value(int32_t id) const { return c_.values[set_][static_cast<size_t>(id)]; }
  void judge_one(const char* what, const std::string& name, const HostTensor& got, const Bounded& want) {
    if (!wrong_.empty()) return;
    if (const Verdict v = judge(from_host(got), want); !v.ok)
      wrong_ = fmt::format("{} {}: {}", what, name, v.reason);
  }

  const GraphCase& c_;
  const size_t set_;
  runtime::Session& session_;
  std::string wrong_;
};

GraphVerdict of(const Status& s, std::string_view where) {
  return {s.code() == Code::unsupported ? Kind::refused : Kind::failed,
          fmt::format("{}: {}", where, s.text())};
}

}  // namespace

Result<std::shared_ptr<const program::CompiledProgram>> compile_with(const ir::Graph& graph,
                                                                     const GraphCase& c, bool fuse,
                                                                     std::span<const compiler::Pass> passes) {
  const auto bytes_of = [&](const std::string& name) -> Result<program::Blob> {
    int32_t id = -1;
    for (const auto& w : c.graph.weights) id = w.name == name ? w.value : id;
    for (const auto& s : c.graph.states) id = s.name == name ? s.before : id;
    if (id < 0) return invalid("the graph has nothing named {}", name);
    const auto bytes = encode(c.values[0][static_cast<size_t>(id)].value);
    return program::Blob::copy_of(bytes.data(), bytes.size());
  };
  // Half of them as if for a device with kernels for all that passes may choose: others run the bodies.
  const bool all_kernels = c.seed % 2 == 0;
  const compiler::Options options{.name = fmt::format("graph_{}", c.seed),
                                  .fuse = fuse,
                                  .has_kernel = [=](auto&&...) { return all_kernels; }};
  WEFT_TRY(auto program, compiler::compile(graph, bytes_of, options, passes));
  return std::make_shared<const program::CompiledProgram>(std::move(program));
}

Result<std::shared_ptr<const program::CompiledProgram>> compile_graph_case(const GraphCase& c) {
  return compile_with(c.graph, c, c.fuse);
}

GraphVerdict run_turns(std::span<const Turn> turns, std::shared_ptr<const program::CompiledProgram> program,
                       const std::string& backend, const SpoilPlan& spoil) {
  auto device = seam::registry().open(backend);
  if (!device.ok()) return {Kind::failed, device.status().text()};
  auto session = runtime::Session::create(std::move(program), {device.value()}, Policy{});
  if (!session.ok()) return of(session.status(), "session");
  if (spoil) session.value()->on_schedule(spoil);
  int number = 1;
  for (const Turn& turn : turns) {
    CaseRun one(turn, *session.value());
    const auto where = fmt::format("run {}", number++);
    if (const Status s = one.run(); !s.ok()) return of(s, where);
    if (!one.wrong().empty()) return {Kind::failed, fmt::format("{}, {}", where, one.wrong())};
  }
  return {};
}

GraphVerdict run_compiled_case(const GraphCase& c, std::shared_ptr<const program::CompiledProgram> program,
                               const std::string& backend, const SpoilPlan& spoil) {
  return run_turns(std::array<Turn, 3>{{{&c, 0}, {&c, 1}, {&c, 0}}}, std::move(program), backend, spoil);
}

GraphVerdict run_graph_case(const GraphCase& c, const std::string& backend, const SpoilPlan& spoil) {
  auto program = compile_graph_case(c);
  if (!program.ok()) return {Kind::failed, "compiler: " + program.status().text()};
  return run_compiled_case(c, program.value(), backend, spoil);
}

static GraphFinding found(const GraphCase& c, const std::string& backend, const SpoilPlan& spoil) {
  const auto verdict = [&](const GraphCase& one) { return run_graph_case(one, backend, spoil); };
  const GraphCase small = shrunk(c, [&](const GraphCase& one) { return verdict(one).kind == Kind::failed; });
  return {c.seed, verdict(small).reason, small.graph.nodes.size(), text(small)};
}

static void count_in(GraphRun& run, const GraphCase& c, const GraphVerdict& v, const RandomGraphs& what) {
  run.run += v.kind != Kind::refused;
  switch (v.kind) {
    case Kind::agreed: ++run.agreed; return;
    case Kind::refused:
      ++run.refused;
      if (run.refusal.empty()) run.refusal = fmt::format("seed {}: {}", c.seed, v.reason);
      return;
    case Kind::failed: break;
  }
  ++run.failed;
  if (run.failures.size() < what.most_findings) run.failures.push_back(found(c, run.backend, what.spoil));
}

static bool compiles_text(const std::string& backend) {
  const auto device = seam::registry().open(backend);
  return device.ok() && device.value()->capability().dialect[0] != 0;
}

std::vector<GraphRun> random_graphs(std::span<const std::string> backends, const RandomGraphs& what) {
  std::vector<GraphRun> runs;
  std::vector<int64_t> share;
  for (const auto& b : backends) {
    runs.push_back({.backend = b});
    share.push_back(compiles_text(b) ? std::max<int64_t>(1, what.share_of_texts) : 1);
  }
  for (int64_t i = 0; i < what.count; ++i) {
    const GraphCase c = random_graph(what.first_seed + static_cast<uint64_t>(i));
    const auto program = compile_graph_case(c);
    for (size_t b = 0; b < runs.size(); ++b) {
      if (i % share[b] != 0) {
        ++runs[b].left_out;
        continue;
      }
      count_in(runs[b], c,
               program.ok() ? run_compiled_case(c, program.value(), runs[b].backend, what.spoil)
                            : GraphVerdict{Kind::failed, "compiler: " + program.status().text()},
               what);
    }
    if (what.progress) what.progress(i + 1, what.count);
  }
  return runs;
}

}  // namespace weft::conformance

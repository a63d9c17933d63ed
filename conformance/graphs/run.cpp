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

// One session and its expected results.
class CaseRun {
 public:
  CaseRun(const GraphCase& c, runtime::Session& session) : c_(c), session_(session) {}

  Status run(size_t set) {
    for (const auto& s : c_.graph.states)
      WEFT_CHECK(session_.set_state(s.name, to_host(value(set, s.before).value)));
    std::vector<HostTensor> in;
    for (const auto& i : c_.graph.inputs) in.push_back(to_host(value(set, i.value).value));
    WEFT_TRY(const auto out, session_.run(in));
    for (size_t k = 0; k < out.size(); ++k)
      judge_one("output", c_.graph.outputs[k].name, out[k], value(set, c_.graph.outputs[k].value));
    for (const auto& s : c_.graph.states) {
      WEFT_TRY(const auto after, session_.state(s.name));
      judge_one("state", s.name, after, value(set, s.after));
    }
    return {};
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Bounded& value(size_t set, int32_t id) const { return c_.values[set][static_cast<size_t>(id)]; }
  void judge_one(const char* what, const std::string& name, const HostTensor& got, const Bounded& want) {
    if (!wrong_.empty()) return;
    if (const Verdict v = judge(from_host(got), want); !v.ok)
      wrong_ = fmt::format("{} {}: {}", what, name, v.reason);
  }

  const GraphCase& c_;
  runtime::Session& session_;
  std::string wrong_;
};

GraphVerdict of(const Status& s, std::string_view where) {
  return {s.code() == Code::unsupported ? Kind::refused : Kind::failed,
          fmt::format("{}: {}", where, s.text())};
}

}  // namespace

Result<std::shared_ptr<const program::CompiledProgram>> compile_graph_case(const GraphCase& c) {
  const auto bytes_of = [&](const std::string& name) -> Result<program::Blob> {
    int32_t id = -1;
    for (const auto& w : c.graph.weights) id = w.name == name ? w.value : id;
    for (const auto& s : c.graph.states) id = s.name == name ? s.before : id;
    if (id < 0) return invalid("the graph has nothing named {}", name);
    const auto bytes = encode(c.values[0][static_cast<size_t>(id)].value);
    return program::Blob::copy_of(bytes.data(), bytes.size());
  };
  WEFT_TRY(auto program,
           compiler::compile(c.graph, bytes_of, {.name = fmt::format("graph_{}", c.seed), .fuse = c.fuse}));
  return std::make_shared<const program::CompiledProgram>(std::move(program));
}

GraphVerdict run_compiled_case(const GraphCase& c, std::shared_ptr<const program::CompiledProgram> program,
                               const std::string& backend, const SpoilPlan& spoil) {
  auto device = seam::registry().open(backend);
  if (!device.ok()) return {Kind::failed, device.status().text()};
  auto session = runtime::Session::create(std::move(program), {device.value()}, Policy{});
  if (!session.ok()) return of(session.status(), "session");
  if (spoil) session.value()->on_schedule(spoil);
  CaseRun cases(c, *session.value());
  int number = 1;
  for (const size_t set : {0, 1, 0}) {
    const auto where = fmt::format("run {}", number++);
    if (const Status s = cases.run(set); !s.ok()) return of(s, where);
    if (!cases.wrong().empty()) return {Kind::failed, fmt::format("{}, {}", where, cases.wrong())};
  }
  return {};
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

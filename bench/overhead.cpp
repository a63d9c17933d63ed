#include <benchmark/benchmark.h>

#include "compiler/compile.h"
#include "eager/apply.h"
#include "link/schedule.h"
#include "loops/loops.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "seam/registry.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Host overhead: the backend `null` computes nothing, so all of the time is Weft's.
namespace weft {
namespace {

Tensor ramp(int64_t n) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(0.25 * static_cast<double>(i));
  const int64_t shape[] = {n};
  return Tensor::of(std::span<const double>(v), shape, DType::f32);
}

void eager_add_16(benchmark::State& state, const char* backend) {
  set_default_backend(backend);
  const Tensor a = ramp(16), b = ramp(16);
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b));
}
BENCHMARK_CAPTURE(eager_add_16, on_null, "null");
BENCHMARK_CAPTURE(eager_add_16, on_reference, "reference");

// A new signature: inference, selection, a plan, a cache entry. 256 at a time, so that clearing the cache
// between rounds is not measured.
void call_cache_miss(benchmark::State& state) {
  constexpr int64_t kSignatures = 256;
  set_default_backend("null");
  std::vector<Tensor> operands;
  for (int64_t n = 1; n <= kSignatures; ++n) operands.push_back(ramp(n));
  for (auto _ : state) {
    state.PauseTiming();
    eager::clear_call_cache();
    const uint64_t before = eager::cache_stats().misses;
    state.ResumeTiming();
    for (const auto& t : operands) benchmark::DoNotOptimize(add(t, t));
    if (eager::cache_stats().misses - before != kSignatures) state.SkipWithError("a call did not miss");
  }
  state.counters["per_miss"] = benchmark::Counter(
      kSignatures, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(call_cache_miss);

constexpr int kNodes = 256;

// A chain of matmuls: nothing to fuse, so each node is a launch.
void compiled_node(benchmark::State& state) {
  set_default_backend("null");
  const Traced traced = trace(
      [](const std::vector<Tensor>& in) {
        Tensor x = in[0];
        for (int i = 0; i < kNodes; ++i) x = matmul(x, in[1]);
        return std::vector<Tensor>{x};
      },
      {{"x", {DType::f32, {4, 4}}}, {"w", {DType::f32, {4, 4}}}});
  auto program = std::make_shared<const program::CompiledProgram>(
      value_or_raise(compiler::compile(*traced.graph, {}, {.name = "chain"})));
  auto session = value_or_raise(
      runtime::Session::create(program, value_or_raise(runtime::devices_for("null", Policy())), Policy()));
  const std::vector<runtime::HostTensor> inputs(2, {{DType::f32, {4, 4}}, std::vector<std::byte>(64)});
  raise_if(session->set_inputs(inputs));
  if (session->schedule().steps.size() != kNodes) state.SkipWithError("not one step a node");
  for (auto _ : state) raise_if(session->execute());
  state.SetItemsProcessed(state.iterations() * kNodes);
  state.counters["per_node"] =
      benchmark::Counter(kNodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(compiled_node);

// Forward and backward through layers of different widths: results of the first half are read in the second,
// so half of all values live at once.
ir::Graph deep_graph(int layers) {
  ir::Graph g;
  std::vector<ir::Value> kept = {g.input("x", {DType::f32, {8, 16}})};
  for (int i = 0; i < layers; ++i) kept.push_back(g.mul(kept.back(), g.full(1, {}, DType::f32)));
  ir::Value gradient = kept.back();
  for (auto at = kept.rbegin(); at != kept.rend(); ++at) gradient = g.add(g.mul(gradient, *at), *at);
  g.output("y", gradient);
  return g;
}

void link_20000_calls(benchmark::State& state) {
  const auto graph = deep_graph(6667);
  const auto program = value_or_raise(compiler::compile(graph, {}, {.name = "deep", .fuse = false}));
  if (program.calls.size() < 20000) state.SkipWithError("fewer calls than that");
  seam::Device* device = value_or_raise(seam::registry().open("native"));
  for (auto _ : state)
    benchmark::DoNotOptimize(value_or_raise(link::link(program, {}, {&device, 1}, Policy())));
  state.counters["calls"] = static_cast<double>(program.calls.size());
}
BENCHMARK(link_20000_calls)->Unit(benchmark::kMillisecond);

// mul, add, exp: one region, one text, whatever the sizes.
void opencl_texts(benchmark::State& state) {
  if (!is_backend_available("opencl")) return state.SkipWithError("opencl is not available here");
  const Dim rows = Dim::symbol("rows", 1, 4096);
  set_default_backend("reference");
  auto region = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(add(mul(in[0], in[1]), in[2]))}; },
      {{"a", {DType::f32, {rows}}}, {"b", {DType::f32, {rows}}}, {"c", {DType::f32, {rows}}}},
      {.name = "region", .backend = "opencl", .policy = {}});
  const uint64_t before = loops::distinct_texts();
  for (auto _ : state)
    for (const int64_t n : {1000, 37}) benchmark::DoNotOptimize(region({ramp(n), ramp(n), ramp(n)}));
  state.counters["texts"] = static_cast<double>(loops::distinct_texts() - before);
}
BENCHMARK(opencl_texts)->Iterations(1)->Repetitions(1);  // a second one would hit the cache

}  // namespace
}  // namespace weft

BENCHMARK_MAIN();

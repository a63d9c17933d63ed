#include <charconv>

#include "conformance/check.h"
#include "conformance/graphs/run.h"
#include "conformance/stopwatch.h"
#include "seam/registry.h"

// Random graphs through compiler, linker and session, to find faults that no single op shows, above all in
// the reuse of memory.
namespace weft::conformance::checks::random {
namespace {

constexpr uint64_t kGraphs = 3'000, kGraphsInFull = 10'000;
constexpr double kSeconds = 20;  // slower devices run fewer graphs, except in a full run
constexpr std::string_view kName = "graph ";

Found one(const std::string& backend, uint64_t seed) {
  const GraphRun run = random_graphs(backend, {.first_seed = seed, .count = 1});
  if (!run.failures.empty())
    return Found::wrong(fmt::format("{}\nthe smallest graph in which it is so:\n{}", run.failures[0].reason,
                                    run.failures[0].smallest));
  return run.refused ? Found::refused(run.refusal) : Found();
}

// The graphs selected by name, whether drawn or not; if none, the drawn ones.
std::vector<uint64_t> asked_for(const CheckRun& run) {
  const auto begin = fmt::format("graphs/{}", kName);
  std::vector<uint64_t> seeds;
  for (std::string_view only : run.options().only.list()) {
    if (!only.starts_with(begin)) continue;
    only.remove_prefix(begin.size());
    uint64_t seed = 0;
    (void)std::from_chars(only.data(), only.data() + only.size(), seed);
    if (seed) seeds.push_back(seed);
  }
  return seeds;
}

void run(CheckRun& run) {
  const auto graph = [&](uint64_t seed) {
    run.run(fmt::format("{}{}", kName, seed), [&] { return one(run.backend(), seed); });
  };
  const auto seeds = asked_for(run);
  for (const uint64_t seed : seeds) graph(seed);
  if (!seeds.empty()) return;
  const uint64_t n = run.options().full ? kGraphsInFull : kGraphs;
  const auto& device = *value_or_raise(seam::registry().open(run.backend()));
  // Each graph needs new kernels: a device that compiles text runs only some of the graphs, except in a full
  // run.
  const bool few = device.capability().dialect[0] && !run.options().full;
  const uint64_t share = few ? static_cast<uint64_t>(RandomGraphs().share_of_texts) : 1;
  const Stopwatch watch;
  for (uint64_t i = 0; i < n && (run.options().full || watch.seconds() < kSeconds); i += share) {
    run.at(i, n);
    graph(1 + (run.options().seed - 1) * kGraphsInFull + i);
  }
}

}  // namespace

extern const Check check = {
    "graphs", "random graphs, compiled and linked, give what their truth and its bounds allow", run, true};

}  // namespace weft::conformance::checks::random

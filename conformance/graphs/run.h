#pragma once
#include <functional>
#include <memory>
#include <span>

#include "conformance/graphs/generate.h"
#include "link/schedule.h"

// Random graphs through Weft's own compiler, linker and sessions, whose planned memory is what is under test.
namespace weft::conformance {

/// What a graph did on a backend.
struct GraphVerdict {
  enum class Kind : uint8_t { agreed, refused, failed } kind = Kind::agreed;
  std::string
      reason;  ///< of a refusal or failure: "run 2, output y0: element 3 of f32[4]: got 1, want 2 +- 1e-7"
};

/// Spoils a resolved plan before it gets memory: a planted fault.
using SpoilPlan = std::function<void(link::Schedule&)>;

/// Compiles the graph and runs it in one session on the first set of numbers, the second, and the first
/// again. Every output, and what every state ends as, is judged each time.
GraphVerdict run_graph_case(const GraphCase& c, const std::string& backend, const SpoilPlan& spoil = nullptr);
/// The same with the compiled program at hand.
Result<std::shared_ptr<const program::CompiledProgram>> compile_graph_case(const GraphCase& c);
GraphVerdict run_compiled_case(const GraphCase& c, std::shared_ptr<const program::CompiledProgram> program,
                               const std::string& backend, const SpoilPlan& spoil = nullptr);

/// A graph that failed, and the smallest one inside it that still does.
struct GraphFinding {
  uint64_t seed = 0;
  std::string reason;    ///< of the smallest one
  size_t nodes = 0;      ///< of the smallest one
  std::string smallest;  ///< as text that ir::parse reads; its numbers stand in remarks
};

struct GraphRun {
  std::string backend;
  int64_t run = 0, agreed = 0, failed = 0, refused = 0;
  int64_t left_out = 0;  ///< of those asked for: see RandomGraphs::share_of_texts
  std::string refusal;   ///< the first one
  std::vector<GraphFinding> failures;
  /// Zero graphs that ran are a failure too.
  bool ok() const { return run > 0 && failed == 0; }
};

/// What is to be run.
struct RandomGraphs {
  uint64_t first_seed = 1;
  int64_t count = 500;
  /// A device that compiles text runs one graph of so many: a graph's texts are its own.
  int64_t share_of_texts = 16;
  size_t most_findings = 3;  ///< are shrunk, of each backend
  SpoilPlan spoil;           ///< for tests of the tests
  std::function<void(int64_t done, int64_t of)> progress;
};

/// Graphs `first_seed` and on, on each backend. A graph is made and its truth found once for all of them.
std::vector<GraphRun> random_graphs(std::span<const std::string> backends, const RandomGraphs& what);
inline GraphRun random_graphs(const std::string& backend, const RandomGraphs& what) {
  return random_graphs(std::span(&backend, 1), what)[0];
}

}  // namespace weft::conformance

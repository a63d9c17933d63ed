#pragma once
#include <functional>
#include <memory>
#include <span>

#include "compiler/compile.h"
#include "conformance/graphs/generate.h"
#include "link/schedule.h"

// Random graphs through Weft's own compiler, linker and sessions, to test their planned memory.
namespace weft::conformance {

/// The outcome of a graph on a backend.
struct GraphVerdict {
  enum class Kind : uint8_t { agreed, refused, failed } kind = Kind::agreed;
  std::string
      reason;  ///< of a refusal or failure: "run 2, output y0: element 3 of f32[4]: got 1, want 2 +- 1e-7"
};

/// Plants a fault in a linked schedule before it gets memory.
using SpoilPlan = std::function<void(link::Schedule&)>;

/// Compiles the graph and runs it in one session on the first set of numbers, the second, and the first
/// again. Judges every output and every final state each time.
GraphVerdict run_graph_case(const GraphCase& c, const std::string& backend, const SpoilPlan& spoil = nullptr);
/// The same for a compiled program.
Result<std::shared_ptr<const program::CompiledProgram>> compile_graph_case(const GraphCase& c);
GraphVerdict run_compiled_case(const GraphCase& c, std::shared_ptr<const program::CompiledProgram> program,
                               const std::string& backend, const SpoilPlan& spoil = nullptr);

/// A run of a session: a case, and which of its sets of numbers.
struct Turn {
  const GraphCase* of;
  size_t set;
};
/// The turns in one session of a program of their graph, which may have a symbol for a size in which they
/// differ.
GraphVerdict run_turns(std::span<const Turn> turns, std::shared_ptr<const program::CompiledProgram> program,
                       const std::string& backend, const SpoilPlan& spoil = nullptr);
/// Compiles `graph` with the weights and the first states of `c`.
Result<std::shared_ptr<const program::CompiledProgram>> compile_with(
    const ir::Graph& graph, const GraphCase& c, bool fuse,
    std::span<const compiler::Pass> passes = compiler::pipeline());

/// A failing graph, and the smallest graph inside it that still fails.
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
  /// It is a failure, too, if no graph ran.
  bool ok() const { return run > 0 && failed == 0; }
};

/// The options of a run.
struct RandomGraphs {
  uint64_t first_seed = 1;
  int64_t count = 500;
  /// A device that compiles text runs one in so many graphs: each graph needs new kernels.
  int64_t share_of_texts = 16;
  size_t most_findings = 3;  ///< are shrunk, of each backend
  SpoilPlan spoil;           ///< for tests of the tests
  std::function<void(int64_t done, int64_t of)> progress;
};

/// Graphs from `first_seed`, on each backend. A graph and its truth are made once for all backends.
std::vector<GraphRun> random_graphs(std::span<const std::string> backends, const RandomGraphs& what);
inline GraphRun random_graphs(const std::string& backend, const RandomGraphs& what) {
  return random_graphs(std::span(&backend, 1), what)[0];
}

}  // namespace weft::conformance

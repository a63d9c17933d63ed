#pragma once
#include "conformance/graphs/run.h"

// Random graphs, compiled with and without fusion: both say the same, within what rounding does to the graph.
namespace weft::conformance {

/// A random graph in which some composite ops are written out in small ops, as exporters do, and in which a
/// size may be a symbol. The errors of outputs and final states are the noise bound of the graph.
struct FusedCase {
  uint64_t seed = 0;
  ir::Graph graph;
  size_t written_out = 0;  ///< how many ops
  bool has_symbol = false;
  std::vector<GraphCase> at;  ///< without the symbol, at some of its sizes: the first one is its own
};
/// The case of a seed, the same on every machine. None for a graph whose noise cannot be measured.
Result<FusedCase> fused_case(uint64_t seed);

struct FusedGraphs {
  uint64_t first_seed = 1;
  int64_t count = 500;
  compiler::Pass planted{};  ///< runs before the others when there is fusion: for tests of the tests
  std::function<void(int64_t done, int64_t of)> progress;
};
struct FusedRun {
  int64_t run = 0, refused = 0, failed = 0;
  int64_t written_out = 0, recomposed = 0;  ///< ops
  int64_t with_symbol = 0, sizes = 0;       ///< graphs; sizes of their symbols
  std::string refusal;                      ///< the first one
  std::vector<std::string> failures;        ///< the first few: reason and graph
  bool ok() const { return run > 0 && failed == 0; }
};
/// Compiles each graph twice, with patterns in an order that its seed draws. Each program runs in one session
/// on each backend: at every size, and again at the first one, with other numbers and with the first ones
/// again.
FusedRun fused_graphs(std::span<const std::string> backends, const FusedGraphs& what);

}  // namespace weft::conformance

#pragma once
#include "compiler/compile.h"

namespace weft::compiler {

/// Nodes that become one call: a region whose body they are. In order; the call stands where the last of them
/// stood.
struct Fusion {
  std::string pattern;
  std::vector<size_t> nodes;
};

/// What passes work on.
struct Module {
  ir::Graph graph;
  std::vector<Fusion> fusions;
};

struct Pass {
  const char* name;
  Status (*run)(Module&, const Options&);
};
/// The ordered list; its order is explained where it stands.
std::span<const Pass> pipeline();

Status remove_dead_nodes(Module& m, const Options&);
Status merge_equal_nodes(Module& m, const Options&);
Status fuse_elementwise(Module& m, const Options&);

Result<program::CompiledProgram> emit(const Module& m, const WeightSource& weights, const Options& options);

/// True where running the node once or twice, or not at all, makes no difference but for its results.
bool is_pure(const ir::Node& node);

}  // namespace weft::compiler

#pragma once
#include "compiler/compile.h"

namespace weft::compiler {

/// Nodes that become one call: a region whose body they are. In order; the call stands where the last of them
/// stood.
struct Fusion {
  std::string pattern;
  std::vector<size_t> nodes;
};

/// Calls that become one: a node, or a fusion, for each place; the call stands at the last. Its body has
/// those calls as steps with bodies of their own, so that a device without a kernel for the group gets them
/// back.
struct Group {
  std::string name;            ///< "linear_gelu": kernels are asked for it by this
  std::vector<size_t> places;  ///< node numbers, that of a fusion's last node for it; in order
};

/// What passes work on.
struct Module {
  ir::Graph graph;
  std::vector<Fusion> fusions;
  std::vector<Group> groups;
};

struct Pass {
  const char* name;
  Status (*run)(Module&, const Options&);
};
/// The ordered list; its order is explained where it stands.
std::span<const Pass> pipeline();

Status remove_dead_nodes(Module& m, const Options&);
Status merge_equal_nodes(Module& m, const Options&);
Status sink_views(Module& m, const Options&);
Status fuse_elementwise(Module& m, const Options&);
Status group_products(Module& m, const Options&);

Result<program::CompiledProgram> emit(const Module& m, const WeightSource& weights, const Options& options);

/// Whether each element of the results needs the elements of the operands at its own place alone.
bool is_elementwise(const ir::Graph& graph, const ir::Node& node);

/// True where running the node once or twice, or not at all, makes no difference but for its results.
bool is_pure(const ir::Node& node);

}  // namespace weft::compiler

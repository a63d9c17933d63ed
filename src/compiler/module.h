#pragma once
#include "compiler/compile.h"

namespace weft::compiler {

/// Nodes that become one call, whose body they are, in order. The call takes the place of the last one.
struct Fusion {
  std::string pattern;
  std::vector<size_t> nodes;
};

/// Calls that become one: a node or a fusion for each place. The group takes the last place. Its body has
/// those calls as steps with bodies of their own, so a device without a kernel for the group runs them one by
/// one.
struct Group {
  std::string name;            ///< "linear_gelu": the op name that kernels see
  std::vector<size_t> places;  ///< node numbers, that of a fusion's last node for it; in order
  bool has_attrs = false;      ///< the attributes of the last of them are the call's, too
};

struct Pattern;

/// The state that passes transform.
struct Module {
  ir::Graph graph;
  std::vector<Fusion> fusions = {};
  std::vector<Group> groups = {};
  std::vector<const Pattern*> patterns = {};  ///< that made these; pattern.h
};

Status canonicalise(Module& m, const Options&);
Status remove_dead_nodes(Module& m, const Options&);
Status merge_equal_nodes(Module& m, const Options&);
Status recompose_ops(Module& m, const Options&);
Status join_losses_with_gradients(Module& m, const Options&);
Status compute_losses_by_rows(Module& m, const Options&);
Status choose_layouts(Module& m, const Options&);
Status write_rows_in_place(Module& m, const Options&);
Status compute_on_products(Module& m, const Options&);
Status sink_views(Module& m, const Options&);
Status fuse_elementwise(Module& m, const Options&);
Status group_products(Module& m, const Options&);
Status group_rows(Module& m, const Options&);

/// The graph, one node a line, and what becomes one call, by the numbers of its nodes.
std::string print(const Module& m);
/// Hands the stage to the innermost Watch of this thread, if there is one.
Status show_stage(std::string after, const Module& m, const WeightSource& weights, const Options& options);

Result<program::CompiledProgram> emit(const Module& m, const WeightSource& weights, const Options& options);

/// Whether each element of the results depends only on the operands' elements at the same index.
bool is_elementwise(const ir::Graph& graph, const ir::Node& node);

/// Whether the node has no effect beside its results.
bool is_pure(const ir::Node& node);

}  // namespace weft::compiler

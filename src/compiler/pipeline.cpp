#include "compiler/module.h"

namespace weft::compiler {

static constexpr Pass kPipeline[] = {
    {"canonicalise", canonicalise},            // leaves dead nodes
    {"merge_equal_nodes", merge_equal_nodes},  // leaves dead nodes, too
    {"recompose_ops", recompose_ops},          // before what makes chains of small ops
    {"join_losses_with_gradients", join_losses_with_gradients},
    {"compute_losses_by_rows", compute_losses_by_rows},  // after it: each part is one op, too
    {"choose_layouts", choose_layouts},            // convolutions are whole, and no chain is cut by views
    {"write_rows_in_place", write_rows_in_place},  // before calls are grouped around the copy
    {"compute_on_products", compute_on_products},  // leaves dead nodes, too
    {"remove_dead_nodes", remove_dead_nodes},
    {"sink_views", sink_views},  // makes products of one factor adjacent
    // From here on, passes refer to nodes by number; these are patterns, in any order.
    {"fuse_elementwise", fuse_elementwise},
    {"group_products", group_products},
    {"group_rows", group_rows},
};

std::span<const Pass> pipeline() { return kPipeline; }

bool is_pure(const ir::Node& node) {
  for (const auto& u : node.op->updates)
    if (u.output >= 0) return false;
  return !ir::has(node.op->traits, ir::Trait::random);
}

Result<program::CompiledProgram> compile(const ir::Graph& graph, const WeightSource& weights,
                                         const Options& options, std::span<const Pass> passes) {
  WEFT_CHECK(ir::verify(graph).at("graph to compile"));
  Module m{graph};
  WEFT_CHECK(show_stage("", m, weights, options));
  for (const auto& pass : passes) {
    WEFT_CHECK(pass.run(m, options).at(pass.name));
    WEFT_CHECK(ir::verify(m.graph).at(fmt::format("after pass {}", pass.name)));
    WEFT_CHECK(show_stage(pass.name, m, weights, options));
  }
  WEFT_TRY(auto program, emit(m, weights, options));
  WEFT_CHECK(program::verify(program).at("compiled program"));
  WEFT_CHECK(check_ops(program).at("compiled program"));
  return program;
}

}  // namespace weft::compiler

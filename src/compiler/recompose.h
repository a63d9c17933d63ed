#pragma once
#include "compiler/match.h"
#include "compiler/module.h"

// What exporters and users write out in small ops becomes the op again, for which backends have kernels.
namespace weft::compiler {

/// A place where a term fits, for the function that makes what stands there instead.
struct Place {
  ir::Graph& graph;
  const Matcher& matcher;
  const Match& match;
  int32_t root;  ///< the value that is replaced

  ir::Value value(std::string_view name) const { return graph.value(match.value(name)); }
  ir::Value root_value() const { return graph.value(root); }
};

/// One file of src/compiler/recompositions each. Their order decides nothing: of those that fit a value, the
/// one that covers most nodes is taken. Between its nodes and the rest of the graph only the operands and the
/// root cross: an intermediate that is an output or has another reader blocks it, as does an operand that is
/// overwritten before the root.
struct Recomposition {
  const char* name;
  std::vector<Term> (*terms)();
  /// Records what makes the value that takes the root's place, of the same type; the last node makes it. None
  /// where the term fits and the meaning does not (another axis, a mask of the wrong shape): then what was
  /// recorded is dropped.
  ir::Value (*make)(const Place&);
};

/// The folder.
std::span<const Recomposition* const> all_recompositions();

/// Until none fits any more.
Status recompose(ir::Graph& g, std::span<const Recomposition* const> all);

// ---- for their files

/// `v` in this shape; itself where it has it.
ir::Value reshaped(ir::Graph& g, ir::Value v, const Shape& shape);
/// Are these elements, apart from axes of size 1 in front, one row of that shape?
bool is_row(const TensorType& t, const Shape& row);
/// Would the op give a first result of this type?
bool gives(const char* op, std::span<const ir::Value> operands, std::initializer_list<Attr> attrs,
           const TensorType& wanted);

}  // namespace weft::compiler

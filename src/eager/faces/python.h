#pragma once
#include <string>

#include "ir/op.h"

// How an op's function looks in Python: the stubs that the build writes, and the functions' own
// documentation, are both made here.
namespace weft::faces {

/// What Python prints as the default of an attribute: `-1`, `"f32"`, `()`; `None` for the end of an axis and
/// for an infinity.
std::string python_default(const ir::AttrSpec& spec, const AttrValue& value);
/// A parameter's name: "from_" for the one that is a word of Python's.
std::string python_name(const char* name);
/// "x, axis=-1", or with types "x: Tensor, axis: int = -1".
std::string python_parameters(const ir::OpDef& op, bool types);
/// "Tensor", "None" or "tuple[Tensor, Tensor]".
std::string python_result(const ir::OpDef& op);

/// The functions and methods of all ops, each with its types, as a file of patterns for nanobind's stubgen.
std::string python_patterns();

/// Is the op also a method of a tensor, its first operand?
inline bool is_method(const ir::OpDef& op) { return op.n_inputs > op.n_optional; }
/// Does the op take a list of operands in Python, as weft/lists.h and weft/einsum.h have it? It has a
/// function of its own there.
inline bool takes_list(const ir::OpDef& op) { return op.n_optional + 2 > int{ir::kMostParameters}; }

}  // namespace weft::faces

#pragma once
#include <string>

#include "codegen/dialect.h"
#include "weft/status.h"

namespace weft::codegen {

/// A rendered kernel: one function, not yet with a name of its own, and the dialect's helpers that it calls.
/// Equal kernels give equal functions.
struct Function {
  std::string text;
  std::vector<bool> helpers;  ///< by their place in the dialect
};
/// Of a verified kernel. Its parameters: the buffers, one 64-bit integer for each of them (the element at
/// which the tensor begins), then the int scalars. Error where the dialect lacks a type or an operation.
Result<Function> render_function(const LoopKernel& kernel, const Dialect& dialect);

/// A text to compile that defines all of them, each helper once.
std::string program_of(std::span<const Function* const> functions, const Dialect& dialect);
/// The name of function i of a program: "weft_loop_0".
std::string entry_of(size_t i);

/// A program of this kernel alone; a fragment gives statements that read in<k> and assign out<k>.
Result<std::string> render(const LoopKernel& kernel, const Dialect& dialect);

}  // namespace weft::codegen

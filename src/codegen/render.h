#pragma once
#include <string>

#include "codegen/dialect.h"
#include "weft/status.h"

namespace weft::codegen {

/// The function that every rendered kernel text defines.
inline constexpr const char* kEntry = "weft_loop";

/// The text of a verified kernel. Its parameters: the buffers, one int for each of them (the element at which
/// the tensor begins), then the int scalars. Equal kernels give equal text. A fragment gives statements that
/// read in<k> and assign out<k>. Error where the dialect lacks a type or an operation.
Result<std::string> render(const LoopKernel& kernel, const Dialect& dialect);

}  // namespace weft::codegen

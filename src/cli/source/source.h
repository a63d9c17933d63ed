#pragma once
#include <string>

#include "program/program.h"

namespace weft::cli::source {

/// The program as C++ on the public headers: a function that makes its outputs of its inputs, op by op, and a
/// main() that reads weights from `file`, inputs from a safetensors file, and writes another. Repeated layers
/// are a loop; a result that is read once stands where it is read.
///
/// Errors   unsupported for a symbol that no input has as a dimension of its own.
Result<std::string> source_text(const program::CompiledProgram& program, const std::string& file);

}  // namespace weft::cli::source
